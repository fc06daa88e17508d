"""The timers of the program that are still armed.

Those that asyncio sets for a pending task (`sleep`, `timeout`, `wait_for`) say nothing that the
task does not say, and those of a library (a cache that expires) are its way of working: neither
is told.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from holdfast.census import births, loops
from holdfast.census.birth import Birth, birth_here, is_library
from holdfast.census.hooks import Hook
from holdfast.census.thing import Thing

__all__ = ["TimerArmed", "all_armed", "blind_spots", "hooks"]

_ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
_CALL_LATER = asyncio.BaseEventLoop.call_later.__code__


class TimerArmed(Thing):
    """A timer that is going to call something of the program."""

    __slots__ = ("_calls", "timer")

    check = "timers"

    def __init__(self, timer: TimerHandle, birth: Birth | None, loop: AbstractEventLoop) -> None:
        super().__init__(birth, loop)
        self.timer = timer
        # Now: a timer that was cancelled does not tell any more.
        self._calls = _in_words(timer)

    @property
    def key(self) -> Hashable:
        return ("timer", id(self.timer))

    @property
    def code(self) -> str:
        return "HF721"

    @property
    def what(self) -> str:
        return f"timer for {self._calls}, {self._due()}"

    def _due(self) -> str:
        if self.over():
            return "over"
        assert self.loop is not None
        left = self.timer.when() - self.loop.time()
        return f"due in {left:.1f} s" if left > 0 else "due now"

    def over(self) -> bool:
        assert self.loop is not None
        armed: Any = self.timer
        return self.loop.is_closed() or self.timer.cancelled() or not armed._scheduled


def all_armed(loop: AbstractEventLoop | None = None) -> Iterator[TimerArmed]:
    """Each armed timer of the program, of one loop or of all."""
    for each in loops.known(loop):
        for timer in tuple(getattr(each, "_scheduled", ())):
            if not timer.cancelled():
                birth = births.of(timer)
                if _is_the_programs(timer, birth):
                    yield TimerArmed(timer, birth, each)


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """Loops that do not show their timers."""
    return loops.unseen("timers", "_scheduled", loop)


def _is_the_programs(timer: TimerHandle, birth: Birth | None) -> bool:
    if birth is not None:
        return not is_library(birth.near_code.co_filename)
    code = getattr(_function(timer), "__code__", None)
    return code is not None and not is_library(code.co_filename)


def _function(timer: Any) -> Any:
    callback = timer._callback
    while isinstance(callback, functools.partial):
        callback = callback.func
    return getattr(callback, "__func__", callback)


def _in_words(timer: TimerHandle) -> str:
    function = _function(timer)
    return getattr(function, "__qualname__", None) or type(function).__name__


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where timers are born; and the loops, of which timers are the first to ask."""
    yield from loops.hooks()
    yield Hook(asyncio.BaseEventLoop, "call_at", _around_call_at)


def _around_call_at(call_at: Callable[..., TimerHandle]) -> Callable[..., TimerHandle]:
    def noted(
        self: AbstractEventLoop, when: float, callback: Any, *args: Any, **options: Any
    ) -> TimerHandle:
        timer = call_at(self, when, callback, *args, **options)
        frame = sys._getframe(1)
        if frame.f_code is _CALL_LATER and frame.f_back is not None:
            frame = frame.f_back
        # What asyncio sets for itself is the part of a task; and `sleep` must stay cheap.
        if not frame.f_code.co_filename.startswith(_ASYNCIO):
            births.register(timer, birth_here(frame, births.owner_now()))
        return timer

    return noted
