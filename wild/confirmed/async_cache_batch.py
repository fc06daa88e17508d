"""async-cache: one get of a batch is cancelled, and the others never get their value."""

import asyncio

from cache import AsyncCache
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "async-cache", "2.0.3"


async def load(keys):
    await asyncio.sleep(0.01)
    return keys


async def program():
    cache = AsyncCache()
    first = victim(cache.get(1, batch_loader=load))
    assert await cache.get(2, batch_loader=load) == 2
    await first


async def reproduce():
    cache = AsyncCache()
    first = asyncio.create_task(cache.get(1, batch_loader=load))
    second = asyncio.create_task(cache.get(2, batch_loader=load))
    await cancel(first)
    await ends(second, "the second get of the batch is never answered")


if __name__ == "__main__":
    main(program, reproduce)
