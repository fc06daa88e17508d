"""aiosqlitepool: an acquire that is cancelled in its health check loses the connection."""

import asyncio

from aiosqlitepool import SQLiteConnectionPool
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "aiosqlitepool", "1.0.0"


class Connection:
    async def execute(self, *_args):
        await asyncio.sleep(0.01)

    async def rollback(self):
        await asyncio.sleep(0.01)

    async def close(self):
        await asyncio.sleep(0)


async def connect():
    return Connection()


async def use(pool):
    async with pool.connection():
        pass


async def program():
    pool = SQLiteConnectionPool(connect, pool_size=1, acquisition_timeout=60)
    await use(pool)
    await victim(use(pool))
    await use(pool)
    await pool.close()


async def reproduce():
    pool = SQLiteConnectionPool(connect, pool_size=1, acquisition_timeout=60)
    await use(pool)
    await cancel(asyncio.create_task(use(pool)))
    await ends(use(pool), "the only connection is never given back")


if __name__ == "__main__":
    main(program, reproduce)
