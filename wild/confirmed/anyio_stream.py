"""anyio: a receiver that task.cancel() cancels when it has just been given an item loses the item."""

import asyncio

import anyio
from script import Bug, cancel, main

from handfast.explore import victim

PACKAGE, VERSION = "anyio", "4.16.0"


async def program():
    sender, receiver = anyio.create_memory_object_stream(1)
    one = victim(receiver.receive())
    await asyncio.sleep(0.01)
    await sender.send("item")
    if (await one).cancelled:
        assert receiver.statistics().current_buffer_used == 1
    sender.close()
    receiver.close()


async def reproduce():
    sender, receiver = anyio.create_memory_object_stream(1)
    task = asyncio.create_task(receiver.receive())
    await asyncio.sleep(0.01)
    sender.send_nowait("item")
    await cancel(task, steps=0)
    if task.cancelled() and not receiver.statistics().current_buffer_used:
        raise Bug("send has returned, receive was cancelled, and the item is gone")


if __name__ == "__main__":
    main(program, reproduce)
