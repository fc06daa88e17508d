"""aiotools: a race that is cancelled while it stops the losers returns normally."""

import asyncio

import aiotools
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "aiotools", "2.2.4"


async def fast():
    await asyncio.sleep(0.01)


async def slow():
    try:
        await asyncio.sleep(10)
    finally:
        await asyncio.sleep(0.05)


async def race():
    return await aiotools.race([fast(), slow()])


async def program():
    await victim(race())


async def reproduce():
    task = asyncio.create_task(race())
    await asyncio.sleep(0.03)  # the fast one has won, the slow one is in its clean-up
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        raise Bug("the cancelled task goes on as if nothing had happened")


if __name__ == "__main__":
    main(program, reproduce)
