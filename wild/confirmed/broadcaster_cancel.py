"""broadcaster: a subscribe that is cancelled raises KeyError in place of CancelledError."""

import asyncio

from broadcaster import Broadcast
from broadcaster_first import Remote
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "broadcaster", "0.3.1"


async def listen(broadcast):
    async with broadcast.subscribe("news"):
        await asyncio.sleep(0.01)


async def program():
    async with Broadcast(backend=Remote("memory://")) as broadcast:
        outcome = await victim(listen(broadcast))
        assert outcome.error is None


async def reproduce():
    async with Broadcast(backend=Remote("memory://")) as broadcast:
        task = asyncio.create_task(listen(broadcast))
        await cancel(task, steps=1)
        if not task.cancelled():
            raise Bug(f"the cancelled task ends with {task.exception()!r}")


if __name__ == "__main__":
    main(program, reproduce)
