"""aiostream: a stream that is cancelled while it closes its sources returns normally."""

import asyncio

from aiostream import pipe, stream
from script import Bug, main

from handfast.explore import victim

PACKAGE, VERSION = "aiostream", "0.8.1"


async def source(seconds):
    try:
        await asyncio.sleep(seconds)
        yield seconds
    finally:
        await asyncio.sleep(0.05)


async def first():
    async with (stream.merge(source(0.01), source(10)) | pipe.take(1)).stream() as items:
        async for _ in items:
            pass


async def program():
    await victim(first())


async def reproduce():
    task = asyncio.create_task(first())
    await asyncio.sleep(0.03)  # the first item is here, and the sources are closed
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        raise Bug("the cancelled task goes on as if nothing had happened")


if __name__ == "__main__":
    main(program, reproduce)
