"""Where a thread stands, in words: the call that it waits in, and the line of the program."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import sys
import threading
from types import FrameType

from holdfast.origin import Origin

__all__ = ["debugged", "frame_of", "name_of", "program_line", "standing"]

# The rooms whose frames are no part of the program. `contextlib` and the like are.
_NOT_THEIRS = (
    os.path.dirname(__file__),
    os.path.dirname(concurrent.futures.__file__),
    os.path.dirname(asyncio.__file__),
    threading.__file__,
    queue.__file__,
)
# Where threads change turns: no calls of the program's.
_TURNS = frozenset(f"{__package__}.{name}" for name in ("baton", "worker", "pools", "words"))


def name_of(function: object) -> str:
    """A function by its name, the same in every run; `to_thread` hides it in a partial."""
    while True:
        inner = getattr(function, "func", None)
        args = getattr(function, "args", None)
        if inner is None:
            break
        function = (
            args[0] if getattr(inner, "__qualname__", "") == "Context.run" and args else inner
        )
    return str(getattr(function, "__qualname__", type(function).__name__))


def standing(frame: FrameType | None) -> str:
    """`Queue.get at file:line in function`: what it waits in, and where the program calls that."""
    call = ""
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THEIRS):
        if frame.f_globals.get("__name__") not in _TURNS:
            call = frame.f_code.co_qualname
        frame = frame.f_back
    if frame is None:
        return call or "its first line, which it has not reached"
    where = str(Origin(frame.f_code, frame.f_lasti))
    return f"{call} at {where}" if call else where


def program_line(frame: FrameType | None) -> Origin | None:
    """The innermost line of the program at or above `frame`."""
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THEIRS):
        frame = frame.f_back
    return Origin(frame.f_code, frame.f_lasti) if frame is not None else None


def debugged(frame: FrameType | None) -> bool:
    """Whether somebody looks at this thread in a debugger: then it may stand as long as it likes."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("bdb", "pdb"):
            return True
        frame = frame.f_back
    return False


def frame_of(ident: int) -> FrameType | None:
    """The innermost frame of a thread, None if it has ended."""
    return sys._current_frames().get(ident)
