"""Programs that write one byte to a pipe for each run."""

from __future__ import annotations

import asyncio
import os
import signal

import handfast

__all__ = ["held_child", "two_tasks"]

if os.environ.get("HANDFAST_SIGNAL_FD"):
    # A shell that runs the suite in the background has its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _signal() -> None:
    signal_fd = os.environ.get("HANDFAST_SIGNAL_FD")
    if signal_fd:
        try:
            os.write(int(signal_fd), b".")
        except BlockingIOError:  # the pipe is full: the test has read enough
            pass


async def two_tasks() -> None:
    """A program without bugs."""
    _signal()

    async def works() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)

    await asyncio.gather(works(), works())


async def held_child() -> None:
    """A child that would run for a minute, and is ended."""
    async with handfast.Process("sleep", "60", grace=0):
        _signal()
        await asyncio.sleep(0)
