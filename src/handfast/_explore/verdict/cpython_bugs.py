"""Bugs of asyncio itself that a program cannot work around. They are not reported."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any

from handfast._await_stack import await_frames


def lost_in_wait_for(task: asyncio.Task[Any]) -> bool:
    """Whether a cancel now is lost in `wait_for`: before Python 3.12 it returns the result if the
    awaited future is done already (https://github.com/python/cpython/issues/86296)."""
    if sys.version_info >= (3, 12):
        return False
    # Only the innermost frame matters: `wait_for` itself has to be what is suspended.
    frame = deque(await_frames(task.get_coro()), maxlen=1)
    if not frame or frame[0].f_code is not asyncio.wait_for.__code__:
        return False
    # The name of the parameter up to 3.11; the branch above excludes later versions.
    awaited = frame[0].f_locals.get("fut")
    return isinstance(awaited, asyncio.Future) and awaited.done()


def lost_in_create_server(task: asyncio.Task[Any]) -> bool:
    """Whether a cancel now loses a server: `create_server` awaits `sleep(0)` after its server has
    started to listen, and the caller does not have the server yet."""
    names = (frame.f_code.co_name for frame in await_frames(task.get_coro()))
    return any(name in ("create_server", "create_unix_server") for name in names)
