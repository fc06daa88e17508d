import logging
import math
from collections.abc import Awaitable, Callable

import anyio


async def every(seconds: float, job: Callable[[], Awaitable[None]]) -> None:
    due = anyio.current_time()
    while True:
        try:
            await job()
        except Exception:
            logging.exception("a periodic job failed")
        due += seconds * max(1, math.ceil((anyio.current_time() - due) / seconds))
        await anyio.sleep_until(due)


async def refreshed(
    refresh: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(every, 60, refresh)
        result = await work()
        group.cancel_scope.cancel()
    return result
