"""How the runs ended: cancelled, finished, failed, or not at all.

Kept in words and numbers, so that a run's frames and its error go away with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from holdfast.census.errors import in_words, raised_at
from holdfast.leaks.cancelling import Run
from holdfast.leaks.stress_report import Failed, Stuck
from holdfast.runtime.stacks import await_chain

__all__ = ["Outcomes", "told"]

# Errors that are kept.
_ERRORS = 5


class Outcomes:
    """What became of the runs until now."""

    def __init__(self) -> None:
        self.struck: Counter[int] = Counter()
        """How many runs were cancelled at each step."""
        self.stuck: list[Stuck] = []
        self.left: set[asyncio.Task[Any]] = set()
        """The tasks that could not be ended at all."""
        self.errors: list[Failed] = []
        self.failed = 0
        self._alone = self._alone_failed = 0

    def note(self, run: Run, *, warms_up: bool = False) -> None:
        """It has ended."""
        if run.cancelled_at is not None and not warms_up:
            self.struck[run.cancelled_at.step] += 1
        error = _error_of(run)
        self._alone += not run.struck
        if error is not None:
            self._alone_failed += not run.struck
            self.failed += 1
            if len(self.errors) < _ERRORS:
                self.errors.append(Failed(run.number, run.cancelled_at, told(error)))

    def note_stuck(self, run: Run, seconds: float) -> None:
        """It has not."""
        stands = await_chain(run.task)
        self.stuck.append(Stuck(run.number, run.cancelled_at, seconds, stands))

    @property
    def never_worked(self) -> bool:
        """Whether each run that nobody cancelled has failed."""
        return self._alone > 0 and self._alone == self._alone_failed


def _error_of(run: Run) -> BaseException | None:
    if run.task.cancelled():
        return None if run.struck else asyncio.CancelledError("and not by stress()")
    return run.task.exception()


def told(error: BaseException) -> str:
    """An error in one line, with the place where it was raised."""
    place = raised_at(error)
    return f"{in_words(error)} ({place})" if place else in_words(error)
