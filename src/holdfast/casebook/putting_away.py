"""What a program that goes wrong has left behind is put away, once it has been told of: nobody who
takes the tour keeps a child of it, and the next chapter starts clean.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.census.children import all_children

__all__ = ["children", "children_ended", "garbage_collected"]

_PATIENCE = 100


def children() -> set[int]:
    """The children that there are."""
    return {child.pid for child in all_children()}


async def children_ended(before: set[int]) -> None:
    """Kill the children that were not there before, and let the loop see that they are gone."""
    for pid in children() - before:
        _kill(pid)
    for _ in range(_PATIENCE):
        if children() <= before:
            return
        await asyncio.sleep(0.01)


def _kill(pid: int) -> None:
    try:
        # One that leads a group has brought others.
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@contextmanager
def garbage_collected() -> Iterator[None]:
    """What is dropped within goes away at the end of it; what it says then is known already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()
