from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import handfast

Fetch = Callable[[str], Coroutine[None, None, str]]


@asynccontextmanager
async def cached(fetch: Fetch) -> AsyncIterator[Fetch]:
    values: dict[str, str] = {}

    async def load(key: str) -> str:
        values[key] = await fetch(key)
        return values[key]

    async def get(key: str) -> str:
        return values[key] if key in values else await tasks.share(key, load, key)

    async with handfast.Scope("cache", on_failure="report") as scope:
        tasks = handfast.KeyedTasks(scope)
        yield get
        scope.cancel()
