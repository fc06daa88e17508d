"""What a cancelled call of a library has done to the rest of the test.

`library_calls` says which tasks may be cancelled, and where. What counts is what nobody can want:
a lock that the call has taken and not given back, an error in its own clean-up, and, in the rest of
the test, a wait without end, a cancel that nobody has requested, or an inner state that is broken.

The rest of the test may wait for the cancelled task with good reason. So what happens there counts
only if it does not happen when the call, in place of being cancelled half-way, raises CancelledError
at its very beginning: then it is due to what the call did, and not to what it did not do.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Collection
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from handfast._explore.hosted.accounting import Accounts
from handfast._explore.hosted.guarded import GuardedCoroutine
from handfast._explore.hosted.library_calls import (
    call_of,
    raised_in_library,
    started_by_test,
    went_through,
)
from handfast._explore.hosted.program import Ended
from handfast._explore.hosted.source_files import is_test_file
from handfast._explore.loop.stepping import Deadlocked
from handfast._explore.verdict.error_text import leaves
from handfast._explore.verdict.verdict import (
    FAILS_UNDER_SCHEDULE,
    Verdict,
    failed_verdict,
    raised_in,
)

if TYPE_CHECKING:
    from handfast._explore.hosted.loops import LoopSource

# A cancelled task may end with an error of its library's own; these are mistakes in its clean-up.
MISTAKES = (
    AttributeError,
    asyncio.InvalidStateError,
    AssertionError,
    IndexError,
    KeyError,
    NameError,
    TypeError,
)
# In place of a CancelledError it is one as well: "deque mutated during iteration", or a lock that is
# released by a task that does not hold it.
_MISTAKES = (*MISTAKES, RuntimeError)
# What the rest of the test may not meet. The test itself passes the missing result on, so that it
# raises an AttributeError or a TypeError is no wonder.
_BROKEN = (asyncio.InvalidStateError, KeyError, IndexError)


class Escaped(NamedTuple):
    """An error that has left the coroutine of a task."""

    task: str
    error: BaseException
    # The task is the one that the explorer has cancelled.
    own: bool


class CancelledCalls:
    """The calls of one run that are cancelled, and what is needed to judge that."""

    def __init__(self, planned: Collection[int], expected: Collection[int]) -> None:
        self.planned = planned
        # The tasks that the test cancels in its plain run, too: it copes with that itself.
        self._expected = expected
        # The tasks that the test has started.
        self._started: set[int] = set()
        # Those that the program has cancelled, also the test's own.
        self.requested: set[int] = set()
        # By the number of the cancelled task: the frame of the call that it was in.
        self.cancelled: dict[int, FrameType | None] = {}
        self.escaped: list[Escaped] = []
        # Whether any task was inside a call when nothing could happen any more.
        self.waiting = False

    def guard(self, number: int, coroutine: Any, frame: FrameType, *, main: bool) -> Any:
        """The coroutine for a new task."""
        if main:
            return coroutine
        if started_by_test(frame):
            self._started.add(number)
        if not self.planned or not asyncio.iscoroutine(coroutine):
            return coroutine
        name: str = getattr(coroutine, "__qualname__", "a task")
        return GuardedCoroutine(coroutine, functools.partial(self._ends, number, name))

    def call(
        self, task: asyncio.Task[Any], number: int, mains: Collection[int]
    ) -> FrameType | None:
        """The call that a task is in, if the task may be cancelled there."""
        started = number in self._started
        return call_of(task, started_by_test=started) if started or number in mains else None

    def judged(self, number: int) -> bool:
        """Whether a cancelled task is one that the test does not expect to be cancelled."""
        return number not in self._expected

    def _ends(self, number: int, name: str, error: BaseException) -> bool:
        """Whether to drop what is raised in a task."""
        own = number in self.cancelled
        if isinstance(error, asyncio.CancelledError):
            if own and self.judged(number) and number not in self.requested:
                return True
            if own or number in self.requested or cancel_requested():
                return False
        if number in self._started:
            self.escaped.append(Escaped(name, error, own))
        return False


def cancel_requested() -> bool:
    """Whether cancel() was called for the current task, also by what shuts the loop down."""
    task = asyncio.current_task() if asyncio._get_running_loop() is not None else None
    return task is None or task.cancelling() > 0


class Doubt(NamedTuple):
    """A verdict that needs a run in which the call is refused at its beginning."""

    verdict: Verdict
    number: int
    frame: FrameType


def judge_call(
    number: int, source: LoopSource, accounts: Accounts, unpaired: set[str], ended: Ended | None
) -> Verdict | Doubt | None:
    """The first thing that went wrong because a call was cancelled."""
    frame = source.calls.cancelled[number]
    if frame is None:
        return None  # earlier departures have moved the task to another place
    task = source.injected.get(number)
    sure = accounts.lost(unpaired, within=frame) or _mistake(task, frame, ended)
    if sure is not None:
        return sure
    verdict = _endless(task, source) or _broken(source, ended)
    return None if verdict is None else Doubt(verdict, number, frame)


def _mistake(
    task: asyncio.Task[Any] | None, frame: FrameType, ended: Ended | None
) -> Verdict | None:
    """The call itself ends with an error that no library raises on purpose."""
    errors = [] if ended is None else [ended.error]
    if task is not None and task.done() and not task.cancelled():
        errors.append(task.exception() or asyncio.CancelledError())
    for error in errors:
        if not isinstance(error, _MISTAKES) or in_test(error):
            continue
        if went_through(error.__traceback__, frame):
            message = f"{frame.f_code.co_qualname} was cancelled and fails in its clean-up"
            return failed_verdict(FAILS_UNDER_SCHEDULE, message, error)
    return None


def in_test(error: BaseException) -> bool:
    """Whether the code of a test has raised it."""
    raised = raised_in(error.__traceback__)
    return raised is not None and is_test_file(raised.tb_frame.f_code.co_filename)


def _endless(task: asyncio.Task[Any] | None, source: LoopSource) -> Verdict | None:
    if source.abort is None or not isinstance(source.abort[0], Deadlocked):
        return None
    over = task is None or task.done()  # None: the call was refused, and no task cancelled
    verdict: Verdict | None = source.abort[1]
    return verdict if over and source.calls.waiting else None


def _broken(source: LoopSource, ended: Ended | None) -> Verdict | None:
    """An error that shows itself outside of the call, raised inside a library."""
    escaped = list(source.calls.escaped)
    own = bool(source.calls.cancelled.keys() & source.mains)
    if ended is not None and (own or not source.calls.requested & source.mains):
        escaped += [Escaped("the test", each, own) for each in leaves(ended.error)]
    for task, error, own in escaped:
        how = _how_broken(error, own=own)
        if how and raised_in_library(error.__traceback__):
            return failed_verdict(FAILS_UNDER_SCHEDULE, f"{task} {how}", error)
    return None


def _how_broken(error: BaseException, *, own: bool) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "" if own else "is cancelled with another task"
    if own:
        return "was cancelled and fails after that" if isinstance(error, _MISTAKES) else ""
    return "fails as another task was cancelled" if isinstance(error, _BROKEN) else ""


class CallCounter:
    """A trace function that counts the calls of one function in one task.

    It can refuse one of them: that call raises CancelledError before its first line.
    """

    def __init__(self, number: int, code: CodeType, refuses: int = 0) -> None:
        self.number = number
        self.frames: list[FrameType] = []
        self.refused = False
        self._code = code
        self._refuses = refuses
        self._source: LoopSource | None = None

    def trace(self, source: LoopSource) -> None:
        """Begin, in this thread."""
        self._source = source
        sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, arg: object) -> None:
        # A coroutine has this event for each of its steps.
        if frame.f_code is not self._code or any(frame is each for each in self.frames):
            return
        source = self._source
        if source is None or source.running() != self.number:
            return
        self.frames.append(frame)
        if len(self.frames) == self._refuses and not source.stepper.settling:
            self.refused = True
            source.calls.cancelled[self.number] = frame
            raise asyncio.CancelledError
