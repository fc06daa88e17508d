"""A cache that fetches a key once: a caller that comes meanwhile gets the same result or error.

A caller that is cancelled does not cancel the fetch of the others, and a failure is not cached.
"""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    fetched: list[str] = []

    async def fetch(key: str) -> str:
        fetched.append(key)
        await asyncio.sleep(1)
        if fetched.count(key) == 1 and key == "b":
            raise OSError(key)
        return key.upper()

    async with version.cached(fetch) as get, asyncio.TaskGroup() as callers:
        first = callers.create_task(get("a"))
        second = callers.create_task(get("a"))
        await asyncio.sleep(0.5)
        first.cancel()
        third = callers.create_task(get("a"))
        values = [await second, await third, await get("a")]
        failed = await asyncio.gather(get("b"), get("b"), return_exceptions=True)
        values.append(await get("b"))
    return values, list(map(repr, failed)), fetched, first.cancelled()
