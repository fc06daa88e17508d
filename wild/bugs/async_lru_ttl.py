"""An entry that is dropped before its call is done breaks the cache's own callback."""

import asyncio

from async_lru import alru_cache

PACKAGE = "async-lru"
BAD = "2.0.2"
GOOD = "2.0.3"
ISSUE = "https://github.com/aio-libs/async-lru/issues/480"
FINDING = "HF431"
OPTIONS = {}


async def program():
    @alru_cache(maxsize=1, ttl=60)
    async def square(key):
        await asyncio.sleep(0.01 * key)
        return key * key

    assert await asyncio.gather(square(1), square(2)) == [1, 4]
    square.cache_invalidate(2)
    square.cache_clear()
