"""The result of a close, as values: what finished, was cancelled, failed, or still runs.

`scope/shutdown.py` fills a report in. A report has no reference to a task, so keeping a report
keeps nothing else alive.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from handfast._await_stack import await_chain
from handfast._origin import Origin
from handfast._runtime.cancel_reason import CLOSE, THE_PROGRAM, CancelReason
from handfast._runtime.errors import StragglersLeft
from handfast._runtime.failure import CleanupErrors, show_error

# A report of a hundred thousand tasks must stay readable.
_SHOWN = 10


# A named tuple is made three times as fast as a frozen dataclass; there may be many.
class TaskEnd(NamedTuple):
    """One task that has ended. `reason`: of a cancelled one, who has cancelled it."""

    name: str
    origin: Origin | None
    error: BaseException | None = None
    reason: CancelReason | None = None

    def __str__(self) -> str:
        where = f", created at {self.origin}" if self.origin else ""
        why = "" if self.reason is None else f", cancelled by {self.reason}"
        error = "" if self.error is None else f": {show_error(self.error)}"
        return f"{self.name}{where}{why}{error}"


class Straggler(NamedTuple):
    """A task, thread or process that has not ended within the timeout.

    `stack` is where it waits, the innermost line last. `age` is in seconds, and 0.0 if the time
    of its creation is not known.
    """

    name: str
    origin: Origin | None
    age: float
    stack: tuple[str, ...]

    # All stragglers are made by the three functions below.

    @classmethod
    def of(
        cls,
        task: asyncio.Task[Any],
        origin: Origin | None,
        age: float | None,
        name: str | None = None,
    ) -> Straggler:
        """A task that is still pending."""
        return cls(name or task.get_name(), origin, age or 0.0, await_chain(task))

    @classmethod
    def of_thread(cls, thread: threading.Thread, since: float) -> Straggler:
        """A thread that has been busy since `since`, a time of `time.monotonic`."""
        lines: list[str] = []
        frame = sys._current_frames().get(thread.ident or 0)
        while frame is not None:
            lines.append(str(Origin(frame.f_code, frame.f_lasti)))
            frame = frame.f_back
        age = time.monotonic() - since
        return cls(f"thread {thread.name}", None, age, tuple(reversed(lines)))

    @classmethod
    def of_killed(cls, process: str) -> Straggler:
        """A process that was killed because its loop ended before it."""
        return cls(f"killed: {process}", None, 0.0, ())

    def __str__(self) -> str:
        known = [f"{self.age:.1f} s old"] if self.age else []
        known += [f"created at {self.origin}"] if self.origin else []
        known += [f"waiting at {self.stack[-1]}"] if self.stack else []
        return f"{self.name} ({', '.join(known)})" if known else self.name


def straggler_error(straggler: Straggler, timeout: float) -> StragglersLeft:
    """The error for one straggler that has used up its timeout."""
    return StragglersLeft(f"not ended within {timeout:g} s: {straggler}")


@dataclass(frozen=True, slots=True)
class CloseReport:
    """What became of each task when a scope was closed.

    `closed_at` is the line of the `close()` that has returned it. What another call has cancelled
    is shown with its reason.

    >>> from handfast.types import TaskEnd
    >>> print(CloseReport("bot", finished=(TaskEnd("save", None),)))
    scope 'bot' closed: 1 finished
    """

    scope: str
    finished: tuple[TaskEnd, ...] = ()
    cancelled: tuple[TaskEnd, ...] = ()
    failed: tuple[TaskEnd, ...] = ()
    cleanup_errors: tuple[Exception, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    closed_at: Origin | None = None

    @property
    def clean(self) -> bool:
        """Whether nothing failed and nothing is left."""
        return not (self.failed or self.cleanup_errors or self.stragglers)

    def raise_if_unclean(self) -> None:
        """Raise all errors and stragglers as one group, operational errors first."""
        if problems := self.problems():
            raise BaseExceptionGroup(f"scope {self.scope!r} did not close cleanly", problems)

    def problems(self, body: BaseException | None = None) -> list[BaseException]:
        """The members of that group, the error of the `body` of `async with` first; the clean-up
        errors are in a group of their own."""
        # One exception object may have ended several tasks, in both phases.
        errors = [body, *(end.error for end in self.failed)]
        problems = {id(error): error for error in errors if error is not None}
        cleanup = {id(e): e for e in self.cleanup_errors if id(e) not in problems}
        found = list(problems.values())
        if closing := [*cleanup.values(), *self.straggler_errors()]:
            found.append(CleanupErrors(f"while closing scope {self.scope!r}", closing))
        return found

    def straggler_errors(self) -> list[StragglersLeft]:
        """One error that names the stragglers; an empty list if there are none."""
        if not self.stragglers:
            return []
        return [StragglersLeft("; ".join(_listed(self.stragglers)))]

    def __str__(self) -> str:
        counts = [
            f"{len(group)} {word}"
            for group, word in (
                (self.finished, "finished"),
                (self.cancelled, "cancelled"),
                (self.failed, "failed"),
                (self.cleanup_errors, "clean-up errors"),
                (self.stragglers, "still running"),
            )
            if group
        ]
        lines = [f"scope {self.scope!r} closed: {', '.join(counts) or 'nothing was running'}"]
        lines += [f"  failed: {line}" for line in _listed(self.failed)]
        lines += [f"  clean-up error: {line}" for line in _listed(self.cleanup_errors)]
        lines += [f"  still running: {line}" for line in _listed(self.stragglers)]
        lines += [f"  cancelled by {line}" for line in _listed(self._cancelled_by_others())]
        return "\n".join(lines)

    def _cancelled_by_others(self) -> tuple[str, ...]:
        """One line for each known reason but the close itself, with the tasks that it has
        cancelled."""
        names: dict[CancelReason, list[str]] = {}
        known = {None, THE_PROGRAM, CancelReason(CLOSE, self.closed_at)}
        for end in self.cancelled:
            if end.reason is not None and end.reason not in known:
                names.setdefault(end.reason, []).append(end.name)
        return tuple(f"{why}: {', '.join(_listed(tuple(of)))}" for why, of in names.items())


def _listed(members: tuple[object, ...]) -> Iterator[str]:
    for member in islice(members, _SHOWN):
        yield show_error(member) if isinstance(member, BaseException) else str(member)
    if len(members) > _SHOWN:
        yield f"... and {len(members) - _SHOWN} more"
