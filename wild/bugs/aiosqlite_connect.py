"""A connect that is cancelled leaves its thread running, and the process cannot end."""

import asyncio

import aiosqlite

from handfast.explore import victim

PACKAGE = "aiosqlite"
BAD = "0.20.0"
GOOD = "0.21.0"
ISSUE = "https://github.com/omnilib/aiosqlite/pull/317"
FINDING = "HF441"
OPTIONS = {"cancel": True}


async def program():
    connection = aiosqlite.connect(":memory:")
    connection.daemon = True

    async def use():
        async with connection as database:
            await database.execute("select 1")

    await victim(use())
    if connection.ident is not None:
        await asyncio.to_thread(connection.join, 1)
        assert not connection.is_alive()
