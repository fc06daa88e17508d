"""The only caller is cancelled: the cached call goes on for nobody."""

import asyncio

from async_lru import alru_cache

from handfast.explore import victim

PACKAGE = "async-lru"
BAD = "2.0.5"
GOOD = "2.1.0"
ISSUE = "https://github.com/aio-libs/async-lru/pull/697"
FINDING = "HF441"
OPTIONS = {"cancel": True}


async def program():
    running = 0

    @alru_cache
    async def load(key):
        nonlocal running
        running += 1
        try:
            await asyncio.sleep(10)
            return key
        finally:
            running -= 1

    outcome = await victim(load(1))
    await asyncio.sleep(1)
    assert running == 0
    if outcome.cancelled:  # the next caller gets a call of its own
        assert await load(1) == 1
