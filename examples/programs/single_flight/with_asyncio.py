import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

Fetch = Callable[[str], Coroutine[None, None, str]]


@asynccontextmanager
async def cached(fetch: Fetch) -> AsyncIterator[Fetch]:
    tasks: dict[str, asyncio.Task[str]] = {}

    async def get(key: str) -> str:
        if key not in tasks:
            task = tasks[key] = asyncio.create_task(fetch(key))
            task.add_done_callback(lambda task: forget_failure(key, task))
        return await asyncio.shield(tasks[key])

    def forget_failure(key: str, task: asyncio.Task[str]) -> None:
        if task.cancelled() or task.exception() is not None:
            del tasks[key]

    try:
        yield get
    finally:
        unfinished = [task for task in tasks.values() if not task.done()]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
