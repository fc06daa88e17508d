"""How the runs ended: cancelled, finished, failed, or not at all.

Only text and numbers are kept, so that a run's frames and its error are freed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from handfast._await_stack import await_chain
from handfast._census.kinds.unread_errors import error_text, raised_at
from handfast._leaks.stress.cancel_points import Run
from handfast._leaks.stress.report import Failed, Stuck

# Errors that are kept.
_ERRORS = 5


class Outcomes:
    """How the runs have ended so far."""

    def __init__(self) -> None:
        self.cancelled_at_step: Counter[int] = Counter()
        """How many runs were cancelled at each step."""
        self.stuck: list[Stuck] = []
        self.not_ended: set[asyncio.Task[Any]] = set()
        """The tasks that even a second cancel did not end."""
        self.errors: list[Failed] = []
        self.failed = 0
        self._uncancelled = self._uncancelled_failed = 0

    def note(self, run: Run, *, warms_up: bool = False) -> None:
        """Note a run that has ended."""
        if run.cancelled_at is not None and not warms_up:
            self.cancelled_at_step[run.cancelled_at.step] += 1
        error = _error_of(run)
        self._uncancelled += not run.was_cancelled
        if error is not None:
            self._uncancelled_failed += not run.was_cancelled
            self.failed += 1
            if len(self.errors) < _ERRORS:
                self.errors.append(Failed(run.number, run.cancelled_at, error_with_line(error)))

    def note_stuck(self, run: Run, seconds: float) -> None:
        """Note a run that did not end in time."""
        waiting_at = await_chain(run.task)
        self.stuck.append(Stuck(run.number, run.cancelled_at, seconds, waiting_at))

    @property
    def never_worked(self) -> bool:
        """Whether every run that was not cancelled has failed."""
        return self._uncancelled > 0 and self._uncancelled == self._uncancelled_failed


def _error_of(run: Run) -> BaseException | None:
    if run.task.cancelled():
        return None if run.was_cancelled else asyncio.CancelledError("and not by stress()")
    return run.task.exception()


def error_with_line(error: BaseException) -> str:
    """An error in one line of text, with the line that raised it."""
    line = raised_at(error)
    return f"{error_text(error)} ({line})" if line else error_text(error)
