"""A task that is cancelled just after it has taken the semaphore keeps it for good."""

import asyncio

import anyio

from handfast.explore import victim

PACKAGE = "anyio"
BAD = "3.4.0"
GOOD = "3.5.0"
ISSUE = "https://github.com/agronholm/anyio/issues/398"
FINDING = "HF431"
OPTIONS = {"cancel": True}


async def program():
    semaphore = anyio.Semaphore(1)

    async def use():
        async with semaphore:
            await asyncio.sleep(0)

    first = victim(use())
    second = asyncio.create_task(use())
    await first
    await second
    assert semaphore.value == 1
