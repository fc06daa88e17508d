"""What a run showed: at most one verdict, the first in time, with its code and the line.

Everything here reads the end of a run; nothing changes it. `leftovers` reads what the program left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from handfast import _await_stack as stacks
from handfast._code_owner import code_owner, is_asyncio, is_machinery
from handfast._explore.loop.stepped_loop import SteppedLoop
from handfast._explore.loop.stepping import Aborted, Deadlocked, InvariantBroken, Livelocked
from handfast._explore.loop.task_table import describe
from handfast._explore.verdict.error_text import error_text, printable
from handfast._explore.verdict.leftovers import definition, left_over, listed, position
from handfast._explore.verdict.swallower import swallower
from handfast._origin import Origin

FAILS_UNDER_SCHEDULE = "HF441"
FAILS_IN_NORMAL_RUN = "HF443"
_FAILURES = (FAILS_UNDER_SCHEDULE, FAILS_IN_NORMAL_RUN)

# What to do about a finding, by its code.
_ADVICE = {
    "HF101": "keep a reference to the task until it has ended",
    "HF102": "await the task, or cancel it and await it",
    "HF423": "do not block the thread of the event loop; use loop.run_in_executor() and await it",
    "HF431": "take locks in one order, and make sure that each wait has a task that ends it",
    "HF432": "make the loop that repeats wait for an event or a growing delay",
    "HF441": "the steps marked » are what differs from a normal run",
    "HF442": "do not await while the state is inconsistent, or hold a lock meanwhile",
    "HF443": "asyncio.run() shows the same failure: debug it there",
    "HF501": "re-raise CancelledError after the clean-up",
    "HF601": "await the task, or read its exception()",
    "HF604": "handle the error in the callback",
    "HF701": "terminate the process and await its wait()",
    "HF702": "await wait() of the process",
    "HF703": "start the child with start_new_session=True and signal its process group",
    "HF711": "stop the thread and join() it",
    "HF712": "call shutdown(), or use the executor in a with statement",
    "HF721": "call cancel() on the timer handle",
    "HF731": "use contextlib.aclosing(), or await aclose()",
    "HF741": "call close() on the server and await wait_closed()",
    "HF742": "call close() on the transport or the StreamWriter",
}


@dataclass(slots=True)
class Verdict:
    """One finding: its code in the catalogue, what happened in a sentence, and where."""

    code: str
    message: str
    # `file:line in function`, the most relevant first; may be empty.
    where: tuple[str, ...] = ()
    # The exception, in the process in which it was raised; elsewhere only its text is known.
    error: BaseException | None = field(default=None, compare=False)
    error_type: str = ""
    # Who cancelled which task, and where, if the run was traced.
    cancelled: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        # Names of tasks and files come from the program.
        self.message = printable(self.message)
        self.where = tuple(map(printable, self.where))

    @property
    def advice(self) -> str:
        """What to do about it; empty for a code that the explorer does not report itself."""
        return _ADVICE.get(self.code, "")

    def same_bug(self, other: Verdict | None) -> bool:
        """Whether shrinking may replace one with the other."""
        # A failure that shrinks to a normal run changes its code and is still the same failure.
        return (
            other is not None
            and self.error_type == other.error_type
            and (self.code == other.code or {self.code, other.code} == set(_FAILURES))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions of other packages often cannot be pickled.
        packed = (self.code, self.message, self.where, None, self.error_type, self.cancelled)
        return Verdict, packed


def judge(
    loop: SteppedLoop, main: asyncio.Task[Any], ended: BaseException | None, *, strict_victims: bool
) -> Verdict | None:
    """The first thing that went wrong in a run that has settled. `ended` is the error that stopped
    it, None if the program returned. `strict_victims`: the program named its victims itself, or is
    the victim."""
    if isinstance(ended, Aborted):
        return aborted_verdict(loop, ended)
    # A CancelledError that nothing injected is an error of the program.
    injected = bool(loop.stepper.accepted)
    # An assertion about what a task has done fails if that task was cancelled: it means something
    # only if the program names the victim, and so expects the cancel.
    ignored = asyncio.CancelledError if strict_victims else (asyncio.CancelledError, AssertionError)
    if ended is not None and not (injected and isinstance(ended, ignored)):
        return _program_failed(loop, main, ended)
    for context in loop.stepper.complaints:
        if not _is_closed_by_peer(context, loop):
            return reported_error(context)
    # Errors before leftovers: what a failing program leaves is a consequence, not the cause.
    verdict = _swallowed(loop, strict=strict_victims) or _unretrieved(loop, main)
    if verdict is not None:
        return verdict
    if ended is not None and not strict_victims:
        # The injected cancel ended the program before it could clean up: what is left over is
        # the work of the explorer.
        return None
    found = left_over(loop)
    return None if found is None else Verdict(*found)


# --- runs that were stopped --------------------------------------------------------------------


def aborted_verdict(loop: SteppedLoop, ended: Aborted) -> Verdict | None:
    """The verdict on a run that was stopped in the middle."""
    if isinstance(ended, InvariantBroken):
        if ended.error is None:
            return Verdict("HF442", "the invariant is false after this step", _positions(loop))
        return failed_verdict("HF442", "the invariant fails after this step", ended.error)
    if isinstance(ended, Deadlocked):
        if ended.lines:
            message = "deadlock: the thread of the event loop waits and cannot be woken"
            return Verdict(ended.code, message, ended.lines)
        waiting = [task for task in loop.tasks if not task.done()]
        lines = listed(waiting, lambda task: f"{describe(task)} waits for {_awaited(task)}")
        # Only the explored loop controls threads.
        lines += getattr(loop, "_blocked_threads", tuple)()
        count = "1 task waits" if len(waiting) == 1 else f"{len(waiting)} tasks wait"
        return Verdict("HF431", f"deadlock: {count} for something that cannot happen", lines)
    assert isinstance(ended, Livelocked)
    return Verdict(
        "HF432", f"the program still runs after {loop.stepper.steps:,} steps", _positions(loop)
    )


def _positions(loop: SteppedLoop) -> tuple[str, ...]:
    waiting = [task for task in loop.tasks if not task.done()]
    return listed(waiting, lambda task: f"{describe(task)} at {position(task)}")


def _awaited(task: asyncio.Task[Any]) -> str:
    """What a blocked task waits for: the function of asyncio, and the line of the program."""
    call = ""
    for frame in stacks.await_frames(task.get_coro()):
        if is_asyncio(frame.f_code.co_filename):
            call = frame.f_code.co_qualname  # the innermost is the most precise: Lock.acquire
    waiter = getattr(task, "_fut_waiter", None)
    if not call and isinstance(waiter, asyncio.Task):
        call = describe(waiter)
    return f"{call or type(waiter).__name__} at {position(task)}"


# --- errors ------------------------------------------------------------------------------------


def _program_failed(loop: SteppedLoop, main: asyncio.Task[Any], error: BaseException) -> Verdict:
    """The test or program raised. Without a departure from the normal order it is no race."""
    is_test = describe(main).rpartition(".")[2].startswith("test")
    what = "the test fails" if is_test else "the program fails"
    if any(loop.stepper.taken) or loop.stepper.accepted:
        return failed_verdict(FAILS_UNDER_SCHEDULE, f"{what} under this schedule", error)
    return failed_verdict(FAILS_IN_NORMAL_RUN, f"{what} in a normal run", error)


def failed_verdict(code: str, what: str, error: BaseException) -> Verdict:
    """A verdict for an exception: its text, and the line of the program that raised it."""
    raised = raised_in(error.__traceback__)
    line = None if raised is None else Origin(raised.tb_frame.f_code, raised.tb_lasti)
    where = (str(line),) if line else ()
    return Verdict(code, f"{what}: {error_text(error)}", where, error, type(error).__name__)


def raised_in(traceback: TracebackType | None) -> TracebackType | None:
    """The innermost entry that belongs to the program, else the innermost of all."""
    program = innermost = None
    while traceback is not None:
        innermost = traceback
        file = traceback.tb_frame.f_code.co_filename
        # The standard library raises for its caller: `assertEqual`, or the end of a context manager.
        if not (is_machinery(file, "explore", "runtime") or code_owner(file) == "stdlib"):
            program = traceback
        traceback = traceback.tb_next
    return program or innermost


def _is_closed_by_peer(context: dict[str, Any], loop: SteppedLoop) -> bool:
    """Whether a server's handler only failed because its client closed the connection, as a client
    that is cancelled does. With `faults=["reset"]` the handler has to cope with it."""
    return (
        "client_connected_cb" in str(context.get("message"))
        and isinstance(context.get("exception"), ConnectionError)
        and "reset" not in loop.settings.faults
    )


def reported_error(context: dict[str, Any]) -> Verdict:
    """A verdict from a call of the loop's exception handler."""
    message = str(context.get("message", "an unhandled error"))
    error = context.get("exception")
    code = "HF601" if "never retrieved" in message else "HF604"
    if "destroyed but it is pending" in message:
        code = "HF101"
    if isinstance(error, BaseException):
        return failed_verdict(code, message, error)
    # asyncio passes the object under one of these keys, depending on the message.
    about = context.get("task") or context.get("future") or context.get("handle")
    return Verdict(code, message, (repr(about),) if about is not None else ())


def _unretrieved(loop: SteppedLoop, main: asyncio.Task[Any]) -> Verdict | None:
    for task in loop.tasks:
        # `task.exception()` would mark the error as retrieved.
        if task is not main and task.done() and getattr(task, "_log_traceback", False):
            setattr(task, "_log_traceback", False)  # noqa: B010 - only asyncio's own name for it
            error = task.exception()
            if error is not None:
                message = f"the exception of {describe(task)} was never retrieved"
                return failed_verdict("HF601", message, error)
    return None


def _swallowed(loop: SteppedLoop, *, strict: bool) -> Verdict | None:
    for cancel in loop.stepper.accepted:
        task = loop.stepper.cancelled_tasks[cancel.task]
        if not task.done() or task.cancelled() or task.cancelling() == 0:
            continue
        if cancel.task in loop.stepper.not_blamed:
            continue
        if task.exception() is not None:
            continue  # it ended with an error, so it did not ignore the cancellation
        if strict or cancel.task in loop.stepper.survived_cancel:
            message = f"{describe(task)} was cancelled and returned normally"
            line = swallower(loop.stepper.cancelled_at[cancel.task]) or definition(task)
            return Verdict("HF501", message, (line,))
    return None
