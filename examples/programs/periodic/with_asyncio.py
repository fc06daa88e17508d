import asyncio
import logging
import math
from collections.abc import Awaitable, Callable


async def every(seconds: float, job: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    due = clock()
    while True:
        try:
            await job()
        except Exception:
            logging.exception("a periodic job failed")
        due += seconds * max(1, math.ceil((clock() - due) / seconds))
        await asyncio.sleep(due - clock())


async def refreshed(
    refresh: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with asyncio.TaskGroup() as group:
        refreshing = group.create_task(every(60, refresh))
        result = await work()
        refreshing.cancel()
    return result
