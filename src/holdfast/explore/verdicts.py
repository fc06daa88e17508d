"""What a run has shown: at most one verdict, the first in time, with its code and the line.

Everything here reads the end of a run; nothing changes it.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from holdfast.explore.ownership import belongs_to_the_program
from holdfast.explore.roll import describe
from holdfast.explore.stepping import Aborted, Deadlocked, InvariantBroken, Livelocked, Stepping
from holdfast.origin import Origin
from holdfast.runtime import stacks

__all__ = ["Verdict", "judge", "timers_left"]

_NOT_THEIRS = (
    os.path.dirname(asyncio.__file__),
    os.path.dirname(__file__),
    os.path.dirname(stacks.__file__),
)


@dataclass(slots=True)
class Verdict:
    """One finding: its code in the catalogue, what happened in a sentence, and where."""

    code: str
    message: str
    # `file:line in function`, the most telling first; may be empty.
    where: tuple[str, ...] = ()
    # The exception, in the process in which it was raised; elsewhere only its text is known.
    error: BaseException | None = field(default=None, compare=False)
    error_type: str = ""

    def same_bug(self, other: Verdict | None) -> bool:
        """Whether shrinking may take the one for the other."""
        return other is not None and (self.code, self.error_type) == (other.code, other.error_type)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions of other people's making often cannot be pickled.
        return Verdict, (self.code, self.message, self.where, None, self.error_type)


def judge(
    loop: Stepping, main: asyncio.Task[Any], ended: BaseException | None, *, strict_victims: bool
) -> Verdict | None:
    """The first thing that went wrong in a run that has settled. `ended` is what stopped it, None
    if the program came to its end. `strict_victims`: the program named its victims itself, or is
    the victim."""
    if isinstance(ended, Aborted):
        return _aborted(loop, ended)
    injected = bool(loop.accepted)
    if ended is not None and not (injected and isinstance(ended, asyncio.CancelledError)):
        return _failed("HF441", "the program failed", ended)
    for context in loop.complaints:
        if not _only_a_peer_that_went(context, loop):
            return _complaint(context)
    verdict = _swallowed(loop, strict=strict_victims) or _unretrieved(loop, main)
    if verdict is not None:
        return verdict
    if ended is not None and not strict_victims:
        # The injected cancel has taken the program with it, before it could clear up: what is
        # left over is the explorer's doing.
        return None
    return _left_over(loop)


# --- in the middle of the run ------------------------------------------------------------------


def _aborted(loop: Stepping, ended: Aborted) -> Verdict | None:
    if isinstance(ended, InvariantBroken):
        if ended.error is None:
            return Verdict("HF442", "the invariant does not hold after this step", _standing(loop))
        return _failed("HF442", "the invariant does not hold after this step", ended.error)
    waiting = [task for task in loop.tasks if not task.done()]
    if isinstance(ended, Deadlocked):
        if ended.lines:
            return Verdict(
                ended.code, "deadlock: the loop's own thread waits for ever", ended.lines
            )
        lines = tuple(f"{describe(task)} waits for {_awaited(task)}" for task in waiting)
        lines += getattr(loop, "_blocked_threads", tuple)()
        return Verdict(
            "HF431", f"deadlock: {_count(waiting)} for something that cannot come", lines
        )
    assert isinstance(ended, Livelocked)
    return Verdict("HF432", f"no end after {loop.steps:,} steps", _standing(loop))


def _standing(loop: Stepping) -> tuple[str, ...]:
    return tuple(f"{describe(t)} at {_place(t)}" for t in loop.tasks if not t.done())


def _count(waiting: list[asyncio.Task[Any]]) -> str:
    return "1 task waits" if len(waiting) == 1 else f"{len(waiting)} tasks wait"


# --- errors ------------------------------------------------------------------------------------


def _failed(code: str, what: str, error: BaseException) -> Verdict:
    line = _raised_at(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = (str(line),) if line else ()
    return Verdict(code, f"{what}: {text}", where, error, type(error).__name__)


def _raised_at(error: BaseException) -> Origin | None:
    """The innermost line of the program itself, else the innermost of all."""
    theirs = innermost = None
    for code, lasti in _frames(error.__traceback__):
        innermost = Origin(code, lasti)
        if not code.co_filename.startswith(_NOT_THEIRS):
            theirs = innermost
    return theirs or innermost


def _frames(traceback: TracebackType | None) -> Iterator[tuple[Any, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next


def _only_a_peer_that_went(context: dict[str, Any], loop: Stepping) -> bool:
    """A client that is cancelled closes its connection, and the server's handler hears of it. With
    resets asked for, how a handler takes one is the question."""
    return (
        "client_connected_cb" in str(context.get("message"))
        and isinstance(context.get("exception"), ConnectionError)
        and "reset" not in loop.settings.faults
    )


def _complaint(context: dict[str, Any]) -> Verdict:
    """What the loop's exception handler was told."""
    message = str(context.get("message", "an unhandled error"))
    error = context.get("exception")
    code = "HF601" if "never retrieved" in message else "HF604"
    if "destroyed but it is pending" in message:
        code = "HF101"
    if isinstance(error, BaseException):
        return _failed(code, message, error)
    about = context.get("task") or context.get("future") or context.get("handle")
    return Verdict(code, message, (repr(about),) if about is not None else ())


def _unretrieved(loop: Stepping, main: asyncio.Task[Any]) -> Verdict | None:
    for task in loop.tasks:
        # Asking the task itself would count as looking at its error.
        if task is not main and task.done() and getattr(task, "_log_traceback", False):
            setattr(task, "_log_traceback", False)  # noqa: B010 - only asyncio's own name for it
            error = task.exception()
            if error is not None:
                return _failed("HF601", f"nobody looked at the error of {describe(task)}", error)
    return None


def _swallowed(loop: Stepping, *, strict: bool) -> Verdict | None:
    for cancel in loop.accepted:
        task = loop.victimised[cancel.task]
        if not task.done() or task.cancelled() or task.cancelling() == 0:
            continue
        if cancel.task in loop.excused:
            continue
        if task.exception() is not None:
            continue  # it did not go on as if nothing had been
        if strict or cancel.task in loop.went_on:
            message = f"{describe(task)} was cancelled and finished as if it had not been"
            return Verdict("HF501", message, (_defined(task),))
    return None


# --- what is left ------------------------------------------------------------------------------


def _left_over(loop: Stepping) -> Verdict | None:
    pending = _pending(loop)
    if pending and not any(loop.tasks.index(task) in loop.own for task in pending):
        # A library's own (the handler of a connection, a clean-up) may need a moment to end.
        loop.settle(seconds=loop.grace)
        pending = _pending(loop)
    if pending:
        lines = tuple(f"{describe(task)} at {_place(task)}" for task in pending)
        what = "1 task is" if len(pending) == 1 else f"{len(pending)} tasks are"
        return Verdict("HF102", f"{what} still pending when the program has ended", lines)
    outside = loop.left_outside()
    if outside is not None and not (outside[0] == "HF741" and loop.lost_servers):
        return Verdict(*outside)
    timers = [_callback(timer) for timer in loop.timers() if _unusual(timer, loop)]
    if timers:
        message = f"still armed when the program has ended: {len(timers)} timer(s)"
        return Verdict("HF721", message, tuple(timers))
    generators = _open_generators(loop)
    if generators:
        message = f"open when the program has ended: {len(generators)} async generator(s)"
        return Verdict("HF731", message, tuple(generators))
    return None


def _pending(loop: Stepping) -> list[asyncio.Task[Any]]:
    return [task for task in loop.tasks if not task.done()]


def timers_left(loop: Stepping) -> tuple[str, ...]:
    """The callbacks of the armed timers, in words."""
    return tuple(sorted({_callback(timer) for timer in loop.timers()}))


def _unusual(timer: Any, loop: Stepping) -> bool:
    """Whether a timer tells something: the program has set it, or the plain run leaves no such
    one. What a library leaves in any case (a cache that expires) is its way of working."""
    code = getattr(_function(timer._callback), "__code__", None)
    if timer not in loop.foreign_timers if code is None else belongs_to_the_program(code):
        return True
    usual = loop.settings.usual
    return usual is not None and _callback(timer) not in usual


def _open_generators(loop: Stepping) -> list[str]:
    if not _live_generators(loop):
        return []
    # One in a reference cycle is on its way out already; only the collector does not know yet.
    gc.collect()
    loop.settle()
    return [
        str(Origin(generator.ag_frame.f_code, generator.ag_frame.f_lasti))
        for generator in _live_generators(loop)
    ]


def _live_generators(loop: Any) -> list[Any]:
    return [generator for generator in loop._asyncgens if generator.ag_frame is not None]


# --- words -------------------------------------------------------------------------------------


def _place(task: asyncio.Task[Any]) -> str:
    chain = stacks.await_chain(task)
    return chain[-1] if chain else _defined(task)


def _defined(task: asyncio.Task[Any]) -> str:
    code = getattr(task.get_coro(), "cr_code", None)
    return f"{code.co_filename}:{code.co_firstlineno} in {code.co_qualname}" if code else repr(task)


def _awaited(task: asyncio.Task[Any]) -> str:
    """What a blocked task waits for: the call of asyncio's that it stands in, and its own line."""
    call = ""
    for frame in stacks.await_frames(task.get_coro()):
        if frame.f_code.co_filename.startswith(_NOT_THEIRS[0]):
            call = frame.f_code.co_qualname  # the innermost says it best: Lock.acquire
    waiter = getattr(task, "_fut_waiter", None)
    if not call and isinstance(waiter, asyncio.Task):
        call = describe(waiter)
    return f"{call or type(waiter).__name__} at {_place(task)}"


def _callback(timer: Any) -> str:
    function = _function(timer._callback)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def _function(callback: Any) -> Any:
    while isinstance(callback, functools.partial):
        callback = callback.func
    return getattr(callback, "__func__", callback)
