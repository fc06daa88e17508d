"""Two nested groups fail together: the inner one swallows the cancel that the outer one sent."""

import asyncio

PACKAGE = "python"
BAD = "3.12"
GOOD = "3.13"
ISSUE = "https://github.com/python/cpython/issues/116720"
FINDING = "HF431"
OPTIONS = {}


async def program():
    async def fail(seconds):
        await asyncio.sleep(seconds)
        raise ValueError(seconds)

    async def inner_work():
        try:
            async with asyncio.TaskGroup() as inner:
                inner.create_task(fail(1.02))
        except* ValueError:
            pass

    try:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(fail(1.0))
            await inner_work()
            await asyncio.Event().wait()  # until the failure of the sibling ends it
    except* ValueError:
        pass
