"""A waiter that is cancelled while the owner releases leaves the lock without an owner for good."""

import asyncio

import anyio

from handfast.explore import victim

PACKAGE = "anyio"
BAD = "4.13.0"
GOOD = "4.14.0"
ISSUE = "https://github.com/agronholm/anyio/pull/1145"
FINDING = "HF431"
OPTIONS = {"cancel": True}


async def program():
    lock = anyio.Lock()
    queued = asyncio.Event()

    async def owner():
        async with lock:
            await queued.wait()
        async with lock:  # the next acquire must succeed
            pass

    async def waiter():
        async with lock:
            await asyncio.sleep(0)

    owning = asyncio.create_task(owner())
    await asyncio.sleep(0)
    waiting = victim(waiter())
    await asyncio.sleep(0)
    queued.set()
    await owning
    await waiting
    assert not lock.locked()
