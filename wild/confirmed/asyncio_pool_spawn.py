"""asyncio-pool: a spawn that is cancelled while it waits for a slot returns normally."""

import asyncio

from asyncio_pool import AioPool
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "asyncio-pool", "0.6.0"


async def program():
    pool = AioPool(size=1)
    await pool.spawn(asyncio.sleep(0.01))
    await victim(pool.spawn(asyncio.sleep(0.01)))
    await pool.join()


async def reproduce():
    pool = AioPool(size=1)
    await pool.spawn(asyncio.sleep(0.05))
    task = asyncio.create_task(pool.spawn(asyncio.sleep(0)))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        raise Bug("the cancelled task goes on as if nothing had happened")


if __name__ == "__main__":
    main(program, reproduce)
