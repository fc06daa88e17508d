"""Armed timers: `call_later` and `call_at`."""

from __future__ import annotations

import asyncio
import functools
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterator
from typing import Any

from handfast._asyncio_internals import callback_of, is_scheduled, timers_of
from handfast._census import creation_log, event_loops
from handfast._census.creation import Creation, creation_in
from handfast._census.kind import Kind
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch
from handfast._code_owner import code_owner, installed_project, is_asyncio, is_program

_CALL_LATER = asyncio.BaseEventLoop.call_later.__code__


def armed(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each armed timer, of one loop or of all."""
    for each in event_loops.known(loop):
        for timer in timers_of(each):
            if not timer.cancelled():
                yield _live_timer(timer, each)


def _live_timer(timer: TimerHandle, loop: AbstractEventLoop) -> LiveObject:
    creation = creation_log.creation_of(timer)
    function = _function(timer)
    name = getattr(function, "__qualname__", None) or type(function).__name__
    left = timer.when() - loop.time()
    due = f"due in {left:.1f} s" if left > 0 else "due now"
    return LiveObject(
        check="timers",
        code="HF721",
        key=("timer", id(timer)),
        what=f"timer for {name}, {due}",
        ended=lambda: loop.is_closed() or timer.cancelled() or not is_scheduled(timer),
        creation=creation,
        loop=loop,
        target=timer,
        library=_library(function, creation),
    )


def _library(function: Any, creation: Creation | None) -> str:
    """The library that set a timer for its own use, such as a cache that expires; empty if the
    program did. asyncio's timers (`sleep`, `timeout`) belong to tasks, which are listed."""
    code = creation.via_code if creation is not None else getattr(function, "__code__", None)
    if code is None:  # written in C, as the callbacks of asyncio's futures are
        return "asyncio"
    if is_program(code.co_filename):
        return ""
    return installed_project(code.co_filename) or code_owner(code.co_filename)


def _function(timer: Any) -> Any:
    callback = callback_of(timer)
    while isinstance(callback, functools.partial):
        callback = callback.func
    return getattr(callback, "__func__", callback)


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    return event_loops.not_listed("timers", "_scheduled", loop)


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the creation of timers, and of the event loops that they are listed by."""
    yield from event_loops.patches()
    yield Patch(asyncio.BaseEventLoop, "call_at", _wrap_call_at)


def _wrap_call_at(call_at: Callable[..., TimerHandle]) -> Callable[..., TimerHandle]:
    def wrapper(
        self: AbstractEventLoop, when: float, callback: Any, *args: Any, **options: Any
    ) -> TimerHandle:
        timer = call_at(self, when, callback, *args, **options)
        frame = sys._getframe(1)
        if frame.f_code is _CALL_LATER and frame.f_back is not None:
            frame = frame.f_back
        # Not for asyncio's own timers: `sleep` must stay cheap.
        if not is_asyncio(frame.f_code.co_filename):
            creation_log.store(timer, creation_in(frame, creation_log.current_owner()))
        return timer

    return wrapper


KIND = Kind("timers", ("HF721",), armed, patches, _not_checked, per_loop=True)
