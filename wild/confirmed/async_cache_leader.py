"""async-cache: the caller that loads is cancelled, and the callers that wait for it wait forever."""

import asyncio

from cache import AsyncLRU
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "async-cache", "2.0.3"


def loading():
    @AsyncLRU(maxsize=8)
    async def load(key):
        await asyncio.sleep(0.01)
        return key

    return load


async def program():
    load = loading()
    first = victim(load(1))
    await asyncio.sleep(0)
    assert await load(1) == 1
    await first


async def reproduce():
    load = loading()
    first = asyncio.create_task(load(1))
    await asyncio.sleep(0)
    second = asyncio.create_task(load(1))
    await cancel(first)
    await ends(second, "the second caller waits for a load that nothing continues")


if __name__ == "__main__":
    main(program, reproduce)
