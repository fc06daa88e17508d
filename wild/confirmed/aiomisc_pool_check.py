"""aiomisc: an acquire that is cancelled while the pool checks the instance loses the instance."""

import asyncio

from aiomisc import PoolBase
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "aiomisc", "18.0.37"


class Pool(PoolBase):
    async def _create_instance(self):
        await asyncio.sleep(0.01)
        return object()

    async def _destroy_instance(self, instance):
        await asyncio.sleep(0)

    async def _check_instance(self, instance):
        await asyncio.sleep(0.01)
        return True


async def use(pool):
    async with pool.acquire():
        pass


async def program():
    pool = Pool(maxsize=1)
    await use(pool)
    await victim(use(pool))
    await use(pool)
    await pool.close()


async def reproduce():
    pool = Pool(maxsize=1)
    await use(pool)
    await cancel(asyncio.create_task(use(pool)))
    await ends(use(pool), "the only instance is never given back")
    await pool.close()


if __name__ == "__main__":
    main(program, reproduce)
