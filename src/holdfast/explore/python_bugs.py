"""Faults of asyncio itself that a program cannot mend: they must not be held against it."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any

from holdfast.runtime.stacks import await_frames

__all__ = ["lost_in_create_server", "lost_in_wait_for"]


def lost_in_wait_for(task: asyncio.Task[Any]) -> bool:
    """Before Python 3.12 `wait_for` drops a cancel that meets the end of what it waits for, and
    returns the result (https://github.com/python/cpython/issues/86296)."""
    if sys.version_info >= (3, 12):
        return False
    frame = deque(await_frames(task.get_coro()), maxlen=1)
    if not frame or frame[0].f_code is not asyncio.wait_for.__code__:
        return False
    awaited = frame[0].f_locals.get("fut")
    return isinstance(awaited, asyncio.Future) and awaited.done()


def lost_in_create_server(task: asyncio.Task[Any]) -> bool:
    """`create_server` sleeps for a turn after its server has begun to listen. A cancel there takes
    the server away from whoever asked for it."""
    names = (frame.f_code.co_name for frame in await_frames(task.get_coro()))
    return any(name in ("create_server", "create_unix_server") for name in names)
