"""A scope that is left by a cancel tears down its last resource only."""

import asyncio
from collections.abc import AsyncIterator

import wireup

from handfast.explore import victim

PACKAGE = "wireup"
BAD = "2.11.2"
GOOD = "2.11.3"
ISSUE = "https://github.com/maldoinc/wireup/issues/141"
FINDING = "HF441"
OPTIONS = {"cancel": True}

held = []


class Database:
    pass


class Session:
    pass


@wireup.injectable(lifetime="scoped")
async def database() -> AsyncIterator[Database]:
    held.append("database")
    try:
        yield Database()
    finally:
        held.remove("database")


@wireup.injectable(lifetime="scoped")
async def session(_database: Database) -> AsyncIterator[Session]:
    held.append("session")
    try:
        yield Session()
    finally:
        held.remove("session")


async def program():
    held.clear()
    container = wireup.create_async_container(injectables=[database, session])

    async def handle():
        async with container.enter_scope() as scope:
            await scope.get(Session)
            await asyncio.sleep(0.01)

    await victim(handle())
    assert held == []
    await container.close()
