"""asyncio-connection-pool: a connect fails, and the caller that waits for a connection waits forever."""

import asyncio

from asyncio_connection_pool import ConnectionPool, ConnectionStrategy
from script import ends, main

PACKAGE, VERSION = "asyncio-connection-pool", "1.1.1"


class Strategy(ConnectionStrategy):
    """The first connect fails."""

    connects = 0

    async def make_connection(self):
        self.connects += 1
        await asyncio.sleep(0.01)
        if self.connects == 1:
            raise ConnectionRefusedError
        return object()

    def connection_is_closed(self, conn):
        return False

    async def close_connection(self, conn):
        pass


async def use(pool):
    async with pool.get_connection():
        pass


async def program():
    pool = ConnectionPool(strategy=Strategy(), max_size=1)
    await asyncio.gather(use(pool), use(pool), return_exceptions=True)


async def reproduce():
    await ends(program(), "the second user waits although nothing uses the pool")


if __name__ == "__main__":
    main(program, reproduce)
