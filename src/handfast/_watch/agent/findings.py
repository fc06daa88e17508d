"""What the agent finds out beside the counts, at its own pace: which places grow, which tasks can never
wake, which finished ones are kept."""

from __future__ import annotations

import time
from asyncio import Task
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from handfast._watch.agent.kept import find_kept
from handfast._watch.agent.stuck_tasks import StuckTasks
from handfast._watch.growth import GrowthDetector, PlaceCount
from handfast._watch.recording.shown_text import clean
from handfast._watch.recording.task_creation import place_of
from handfast._watch.snapshot import Growth, KeptTasks, NeverWakes

Counts: TypeAlias = Callable[[], Iterable[PlaceCount]]
"""Counts the live tasks by place."""

Tasks: TypeAlias = Callable[[], Iterable[Task[Any]]]
"""Gives the pending tasks."""


# At least; `find_kept` waits longer if its search takes long.
_KEPT_PERIOD = 10.0

# Longer than any of them waits for its next look.
_FAILED_FOR = 130.0


class Findings:
    """The results, which a snapshot shows. `look` is called in the agent's thread."""

    def __init__(self) -> None:
        self._growth = GrowthDetector()
        self._stuck = StuckTasks()
        self.kept: tuple[KeptTasks, ...] = ()
        self._kept_due = time.monotonic() + _KEPT_PERIOD
        # What failed, with the error, until it is due again.
        self._failed: dict[str, tuple[float, str]] = {}

    def look(self, counts: Counts, tasks: Tasks) -> None:
        """Look again, if it is time. Call it about once a second."""
        now = time.monotonic()
        parts: dict[str, Callable[[], object]] = {
            "which places grow": lambda: self._growth.observe(now, _when_needed(counts)),
            "which tasks can never wake": lambda: self._stuck.look(tasks),
            "which finished tasks are kept": self._look_for_kept,
        }
        self._failed = {each: last for each, last in self._failed.items() if last[0] > now}
        for question, part in parts.items():
            try:
                part()
            except Exception as error:  # of one question; the others have answers all the same
                self._failed[question] = now + _FAILED_FOR, type(error).__name__

    def _look_for_kept(self) -> None:
        if time.monotonic() >= self._kept_due:
            self._kept_due = time.monotonic() + _KEPT_PERIOD
            found = find_kept(_number_of_place)
            self.kept = tuple(replace(each, container=clean(each.container)) for each in found)

    @property
    def never_wakes(self) -> tuple[NeverWakes, ...]:
        """As of the last look."""
        return self._stuck.never_wakes

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What the last look could not find out."""
        failed = [
            f"{question} is not known: {clean(error)} while the program's objects were read"
            for question, (_, error) in self._failed.copy().items()
        ]
        return (*self._stuck.not_checked, *failed)

    def growth_of(self, place: int) -> Growth | None:
        """The growth of a place, by its id."""
        return self._growth.growth_of(place)


def _number_of_place(task: Task[Any]) -> int | None:
    place = place_of(task)
    return None if place is None else place.id


def _when_needed(counts: Counts) -> Iterable[PlaceCount]:
    """Most looks read nothing; counting is done when the first count is read."""
    yield from counts()
