"""Faults of asyncio itself that a program cannot mend: they must not be held against it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

__all__ = ["lost_in_create_server", "lost_in_wait_for"]


def lost_in_wait_for(task: asyncio.Task[Any]) -> bool:
    """Before Python 3.12 `wait_for` drops a cancel that meets the end of what it waits for, and
    returns the result (https://github.com/python/cpython/issues/86296)."""
    if sys.version_info >= (3, 12):
        return False
    innermost: Any = task.get_coro()
    while getattr(innermost, "cr_await", None) is not None and hasattr(
        innermost.cr_await, "cr_frame"
    ):
        innermost = innermost.cr_await
    frame = getattr(innermost, "cr_frame", None)
    if frame is None or frame.f_code is not asyncio.wait_for.__code__:
        return False
    awaited = frame.f_locals.get("fut")
    return isinstance(awaited, asyncio.Future) and awaited.done()


def lost_in_create_server(task: asyncio.Task[Any]) -> bool:
    """`create_server` sleeps for a turn after its server has begun to listen. A cancel there takes
    the server away from whoever asked for it."""
    awaited: Any = task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        if frame.f_code.co_name in ("create_server", "create_unix_server"):
            return True
        awaited = awaited.cr_await
    return False
