"""aiosqlitepool: a release that is cancelled in its rollback loses the connection."""

import asyncio

from aiosqlitepool import SQLiteConnectionPool
from aiosqlitepool_acquire import connect, program, use
from script import ends, main

PACKAGE, VERSION = "aiosqlitepool", "1.0.0"


async def reproduce():
    pool = SQLiteConnectionPool(connect, pool_size=1, acquisition_timeout=60)
    released = asyncio.Event()

    async def work():
        async with pool.connection():
            released.set()

    task = asyncio.create_task(work())
    await released.wait()
    await asyncio.sleep(0.005)  # half of the rollback
    task.cancel()
    await asyncio.wait([task])
    await ends(use(pool), "the only connection is never given back")


if __name__ == "__main__":
    main(program, reproduce)
