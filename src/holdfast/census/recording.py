"""Births are noted while somebody asks for it: the hooks go in with the first, out with the last.

A library may be imported later than that. uvloop is then hooked when the next runner is made, at
the latest when somebody catches up.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from holdfast.census import (
    births,
    children,
    connections,
    descriptors,
    errors,
    generators,
    resources,
    tasks,
    threads,
    timers,
)
from holdfast.census.hooks import Hook

__all__ = ["catch_up", "recording"]

_ROOMS = (
    tasks,
    errors,
    timers,
    generators,
    children,
    threads,
    connections,
    resources,
    descriptors,
)
_LOCK = threading.Lock()
_in: list[Hook] = []
_asked = 0
_uvloop = False


@contextmanager
def recording() -> Iterator[None]:
    """Note where things are born, within."""
    try:
        _begin()
        yield
    finally:
        _end()


def catch_up() -> None:
    """Hook what has been imported since."""
    global _uvloop
    if _asked and not _uvloop and "uvloop" in sys.modules:
        with _LOCK:
            _uvloop = True
            late = sys.modules["uvloop"].Loop
            _put_in(hook for hook in _wanted() if hook.where is late)


def _begin() -> None:
    global _asked, _uvloop
    with _LOCK:
        _asked += 1
        if _asked == 1:
            _uvloop = "uvloop" in sys.modules
            _put_in([*_wanted(), Hook(asyncio.Runner, "__init__", _around_runner)])
            births.record(True)


def _wanted() -> list[Hook]:
    return [hook for room in _ROOMS for hook in room.hooks()]


def _put_in(hooks: Iterable[Hook]) -> None:
    for hook in hooks:
        hook.put_in()
        _in.append(hook)


def _around_runner(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def caught_up(self: Any, *args: Any, **options: Any) -> None:
        catch_up()
        init(self, *args, **options)

    return caught_up


def _end() -> None:
    global _asked
    with _LOCK:
        _asked -= 1
        if _asked == 0:
            while _in:
                _in.pop().take_out()
            births.record(False)
            for room in (resources, errors, descriptors):
                room.forget()
