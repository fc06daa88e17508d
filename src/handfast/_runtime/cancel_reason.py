"""Who has cancelled a task, and on which line.

A reason is made once for each call that cancels, and shared by all tasks that the call cancels: a
task costs nothing more until it is cancelled. It travels as the message of the `CancelledError`,
so a scope inside a cancelled task can say why that was cancelled.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from dataclasses import dataclass
from inspect import CO_COROUTINE
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from handfast._await_stack import awaited
from handfast._code_owner import is_asyncio, is_machinery
from handfast._origin import Origin

# A message may be of any length.
_MAX_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class CancelReason:
    """Who has cancelled a task, and on which line, if that is known.

    It is the message of the `CancelledError`, so code in the task can read it too.

    >>> import asyncio, handfast
    >>> async def main():
    ...     scope = handfast.Scope("bot")
    ...     scope.spawn(asyncio.sleep(3600))
    ...     return await scope.close()
    >>> asyncio.run(main()).cancelled[0].reason.text
    'close()'
    """

    text: str
    origin: Origin | None = None

    def __str__(self) -> str:
        return self.text if self.origin is None else f"{self.text} at {self.origin}"


class CancelRequest(NamedTuple):
    """When and why a scope has cancelled one of its tasks, or found it cancelled."""

    time: float
    reason: CancelReason | None


CLOSE = "close()"
THE_PROGRAM = CancelReason("the program")
DROPPED = CancelReason("its scope, which was dropped without close")
LOOP_ENDED = CancelReason("the end of its event loop")
BLOCK_ENDED = CancelReason("the end of the block of its scope")
# Of services.
ALL_OTHERS_ENDED = CancelReason("its scope, whose other tasks have ended")


def reason_here(text: str) -> CancelReason:
    """A reason with the line that has called or awaited the function that calls this.

    There is none if a task runs nothing but that function, or if the loop calls it.
    """
    awaited_here = sys._getframe(1).f_code.co_flags & CO_COROUTINE
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_machinery(frame):
        if not frame.f_code.co_flags & CO_COROUTINE and (
            awaited_here or is_asyncio(frame.f_code.co_filename)
        ):
            return CancelReason(text)  # it runs the loop
        frame = frame.f_back
    return CancelReason(text, None if frame is None else Origin(frame.f_code, frame.f_lasti))


def line_of_cancel(frame: FrameType) -> CancelReason | None:
    """The reason for a `task.cancel()` in this frame; None if asyncio or the runtime calls it."""
    if _is_machinery(frame):
        return None
    return CancelReason("task.cancel()", Origin(frame.f_code, frame.f_lasti))


def failure_reason(who: str, error: BaseException) -> CancelReason:
    """The failure of a task or of a block, at the line there that has failed."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and _is_machinery(traceback.tb_frame):
        traceback = traceback.tb_next
    origin = None if traceback is None else Origin(traceback.tb_frame.f_code, traceback.tb_lasti)
    return CancelReason(f"the failure of {who} ({type(error).__qualname__})", origin)


def carried_reason(cancelled: asyncio.CancelledError) -> CancelReason | None:
    """The reason that a cancel carries: as a value, or as the text that the program has given."""
    message = cancelled.args[0] if cancelled.args else None
    if isinstance(message, str):
        return CancelReason(f"{THE_PROGRAM.text} ({message[:_MAX_MESSAGE]})")
    return message if isinstance(message, CancelReason) else None


def outer_reason(task: asyncio.Task[Any] | None, cancelled: asyncio.CancelledError) -> CancelReason:
    """The reason for what a task has to end because it was cancelled itself."""
    name = "its block" if task is None else f"task {task.get_name()!r}"
    return _by(f"the cancel of {name}", carried_reason(cancelled))


def held_by(scope: str, reason: CancelReason | None) -> CancelReason:
    """The reason for the tasks of a scope that this scope holds, and has to end for `reason`."""
    return _by(f"the end of scope {scope!r}", reason)


def _by(text: str, reason: CancelReason | None) -> CancelReason:
    if reason is None:
        return CancelReason(text)
    return CancelReason(f"{text} by {reason.text}", reason.origin)


def timeout_reason(coro: Any) -> CancelReason | None:
    """The `asyncio.timeout()` around a line of this suspended coroutine that has expired, if any.

    It cancels without a message. The block is found in the coroutine that has entered it.
    """
    line: Origin | None = None
    for running in awaited(coro):
        frame = running.cr_frame if hasattr(running, "cr_frame") else None
        if frame is not None and not _is_machinery(frame):
            line = Origin(frame.f_code, frame.f_lasti)
        if any(timeout.expired() for timeout in entered_timeouts(running)):
            return CancelReason("asyncio.timeout()", line)
    return None


def entered_timeouts(running: Any) -> list[asyncio.Timeout]:
    """The blocks of `asyncio.timeout()` in which a suspended coroutine is."""
    # The interpreter keeps `__aexit__` for the end of the block: as a bound method, or with the
    # object beside it (3.14).
    found = (getattr(value, "__self__", value) for value in gc.get_referents(running))
    return [value for value in found if isinstance(value, asyncio.Timeout)]


def _is_machinery(frame: FrameType) -> bool:
    return is_machinery(frame.f_code.co_filename, "runtime")
