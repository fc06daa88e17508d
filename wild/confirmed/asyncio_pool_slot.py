"""asyncio-pool: a job that is cancelled before its first step keeps its slot forever."""

import asyncio

from asyncio_pool import AioPool
from script import ends, main

PACKAGE, VERSION = "asyncio-pool", "0.6.0"


async def program():
    pool = AioPool(size=1)
    future = await pool.spawn(asyncio.sleep(1))
    await pool.cancel(future)
    await pool.join()


async def reproduce():
    await ends(program(), "join waits for a job that never started")


if __name__ == "__main__":
    main(program, reproduce)
