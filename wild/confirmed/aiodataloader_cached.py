"""aiodataloader: a load that is cancelled stays in the cache, and every later load of its key fails."""

import asyncio

from aiodataloader import DataLoader
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "aiodataloader", "0.4.3"


class Squares(DataLoader):
    async def batch_load_fn(self, keys):
        await asyncio.sleep(0.01)
        return [key * key for key in keys]


async def load(loader):
    return await loader.load(3)


async def program():
    loader = Squares()
    await victim(load(loader))
    later = asyncio.create_task(load(loader))
    await asyncio.wait([later])
    assert not later.cancelled()


async def reproduce():
    loader = Squares()
    await cancel(asyncio.create_task(load(loader)))
    later = asyncio.create_task(load(loader))
    await asyncio.wait([later])
    if later.cancelled():
        raise Bug("a later load that was not cancelled gets CancelledError")


if __name__ == "__main__":
    main(program, reproduce)
