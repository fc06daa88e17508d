"""One load of a batch is cancelled: the others of the batch never get their value."""

import asyncio

import aiodataloader

from handfast.explore import victim

PACKAGE = "aiodataloader"
BAD = "0.4.0"
GOOD = "0.4.2"
ISSUE = "https://github.com/syrusakbary/aiodataloader/pull/44"
FINDING = "HF431"
OPTIONS = {"cancel": True}


class Squares(aiodataloader.DataLoader):
    async def batch_load_fn(self, keys):
        await asyncio.sleep(0)
        return [key * key for key in keys]


async def program():
    loader = Squares(cache=False)

    async def load(key):
        return await loader.load(key)

    one = victim(load(2))
    other = asyncio.create_task(load(3))
    await one
    assert await other == 9
