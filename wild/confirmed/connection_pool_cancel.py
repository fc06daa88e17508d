"""asyncio-connection-pool: a user that is cancelled at the start of its connect keeps the slot."""

import asyncio

from asyncio_connection_pool import ConnectionPool
from connection_pool_failed import Strategy, use
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "asyncio-connection-pool", "1.1.1"


class Working(Strategy):
    connects = 1


async def program():
    pool = ConnectionPool(strategy=Working(), max_size=1)
    await victim(use(pool))
    await use(pool)


async def reproduce():
    pool = ConnectionPool(strategy=Working(), max_size=1)
    await cancel(asyncio.create_task(use(pool)), steps=1)
    await ends(use(pool), "the only slot is never given back")


if __name__ == "__main__":
    main(program, reproduce)
