"""A waiter that was notified and is cancelled keeps the notification to itself."""

import asyncio

from handfast.explore import victim

PACKAGE = "python"
BAD = "3.12"
GOOD = "3.13"
ISSUE = "https://github.com/python/cpython/issues/112202"
FINDING = "HF431"
OPTIONS = {"cancel": True}


async def program():
    condition = asyncio.Condition()
    items = 0

    async def take():
        nonlocal items
        async with condition:
            await condition.wait_for(lambda: items)
            items -= 1

    cancelled = victim(take())
    other = asyncio.create_task(take())
    await asyncio.sleep(0.01)
    async with condition:
        items += 1
        condition.notify()
    if (await cancelled).finished:
        async with condition:
            items += 1
            condition.notify()
    await other
    assert items == 0
