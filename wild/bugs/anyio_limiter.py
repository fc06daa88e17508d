"""A task that is cancelled just after it was given a token does not pass the token on."""

import asyncio

import anyio

from handfast.explore import victim

PACKAGE = "anyio"
BAD = "4.9.0"
GOOD = "4.10.0"
ISSUE = "https://github.com/agronholm/anyio/issues/947"
FINDING = "HF431"
OPTIONS = {"cancel": True}


async def program():
    limiter = anyio.CapacityLimiter(1)

    async def use():
        async with limiter:
            await asyncio.sleep(0)

    first = asyncio.create_task(use())
    second = victim(use())
    third = asyncio.create_task(use())
    await first
    await second
    await third
    assert limiter.borrowed_tokens == 0
