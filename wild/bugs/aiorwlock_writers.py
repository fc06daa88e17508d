"""A writer that comes between the release and the wake-up of the next one shares the lock."""

import asyncio

import aiorwlock

PACKAGE = "aiorwlock"
BAD = "1.1.0"
GOOD = "1.3.0"
ISSUE = "https://github.com/aio-libs/aiorwlock/issues/235"
FINDING = "HF441"
OPTIONS = {}


async def program():
    lock = aiorwlock.RWLock(fast=True)
    writing = 0

    async def write(start, length):
        nonlocal writing
        await asyncio.sleep(start)
        async with lock.writer_lock:
            writing += 1
            assert writing == 1, "two writers at once"
            await asyncio.sleep(length)
            writing -= 1

    await asyncio.gather(write(0, 1.0), write(0.5, 1.0), write(1.02, 1.0))
