"""A client cancelled while its connection is being checked goes on and gets it all the same."""

import asyncio
from types import SimpleNamespace

from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from handfast.explore import victim

PACKAGE = "psycopg-pool"
BAD = "3.3.1"
GOOD = "3.3.3"
NEEDS = ["psycopg[binary]==3.2.13"]
ISSUE = "https://github.com/psycopg/psycopg/issues/1401"
FINDING = "HF501"
OPTIONS = {"cancel": True}


class Connection:
    """As much of a connection as the pool looks at."""

    def __init__(self):
        self.pgconn = SimpleNamespace(transaction_status=TransactionStatus.IDLE)
        self.closed = False

    @classmethod
    async def connect(cls, *_args, **_options):
        return cls()

    async def close(self):
        self.closed = True

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error):
        pass


async def check(connection):
    await asyncio.sleep(0.01)  # SELECT 1


async def program():
    async with AsyncConnectionPool(
        connection_class=Connection, min_size=1, max_size=1, num_workers=1, check=check
    ) as pool:

        async def use():
            async with pool.connection():
                await asyncio.sleep(0.01)

        await victim(use())
        async with pool.connection(timeout=5):
            pass
