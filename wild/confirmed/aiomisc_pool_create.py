"""aiomisc: an acquire that is cancelled while the pool creates an instance keeps its slot."""

import asyncio

from aiomisc_pool_check import Pool, use
from script import cancel, ends, main

from handfast.explore import victim

PACKAGE, VERSION = "aiomisc", "18.0.37"


async def program():
    pool = Pool(maxsize=1)
    await victim(use(pool))
    await use(pool)
    await pool.close()


async def reproduce():
    pool = Pool(maxsize=1)
    await cancel(asyncio.create_task(use(pool)))
    await ends(use(pool), "the only slot is never given back")
    await pool.close()


if __name__ == "__main__":
    main(program, reproduce)
