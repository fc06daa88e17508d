"""aiochannel: a second close fails if a put was waiting at the first one."""

import asyncio

from aiochannel import Channel
from script import Bug, main

PACKAGE, VERSION = "aiochannel", "1.4.1"


async def program():
    channel = Channel(1)
    await channel.put(1)

    async def put():
        try:
            await channel.put(2)
        except Exception:
            pass

    task = asyncio.create_task(put())
    await asyncio.sleep(0)
    channel.close()
    channel.close()
    await task


async def reproduce():
    try:
        await program()
    except asyncio.InvalidStateError as error:
        raise Bug("close raises InvalidStateError") from error


if __name__ == "__main__":
    main(program, reproduce)
