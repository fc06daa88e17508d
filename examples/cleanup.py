"""Ends what a broken version leaks, so that the next program starts clean and no child is left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from handfast._census.kinds.child_processes import children as live_children

__all__ = ["children", "collect_garbage", "end_new_children"]

_ATTEMPTS = 100


def children() -> set[int]:
    """The process ids of all children."""
    return {child.target for child in live_children() if not child.library}


async def end_new_children(before: set[int]) -> None:
    """Kill the children that are not in `before`, and let the event loop reap them."""
    for pid in children() - before:
        _kill(pid)
    for _ in range(_ATTEMPTS):
        if children() <= before:
            return
        await asyncio.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        # The leader of a process group may have children of its own.
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def collect_garbage() -> Iterator[None]:
    """Collect what the block drops, and ignore the ResourceWarnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()
