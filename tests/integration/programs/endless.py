"""Programs that tell the suite, on a pipe, that they are running: one byte for each run."""

from __future__ import annotations

import asyncio
import os
import signal

import holdfast

__all__ = ["held_child", "two_tasks"]

if os.environ.get("HOLDFAST_HEARD_ON"):
    # A shell that runs the suite in the background has its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _tell() -> None:
    heard_on = os.environ.get("HOLDFAST_HEARD_ON")
    if heard_on:
        try:
            os.write(int(heard_on), b".")
        except BlockingIOError:  # nobody listens any more: enough was heard
            pass


async def two_tasks() -> None:
    """Nothing is wrong with it."""
    _tell()

    async def works() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)

    await asyncio.gather(works(), works())


async def held_child() -> None:
    """A child that would run for a minute, and somebody who ends it."""
    async with holdfast.Process("sleep", "60", grace=0):
        _tell()
        await asyncio.sleep(0)
