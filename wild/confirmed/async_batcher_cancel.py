"""async-batcher: one item of a batch is cancelled, and the others never get their result."""

import asyncio

from async_batcher.batcher import AsyncBatcher
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "async-batcher", "0.2.2"


class Squares(AsyncBatcher):
    async def process_batch(self, batch):
        await asyncio.sleep(0.01)
        return [each * each for each in batch]


async def program():
    batcher = Squares()
    one = victim(batcher.process(2))
    assert await asyncio.wait_for(batcher.process(3), 5) == 9
    await one
    await batcher.stop()


async def reproduce():
    batcher = Squares()
    one, other = (asyncio.create_task(batcher.process(each)) for each in (2, 3))
    await cancel(one, steps=5)
    await ends(other, "the other item of the batch is never answered")


if __name__ == "__main__":
    main(program, reproduce)
