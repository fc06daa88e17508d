"""Which tasks have not moved for a minute, and which of those can never wake.

No history is kept of each task. A look notes one task of each group, those that were created on one line
and wait at one line, and what it awaits; the next look, a minute later, takes those that still await the
same. `never_wakes` then finds out whether anything can wake them.
"""

from __future__ import annotations

import time
import weakref
from asyncio import Task
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from handfast._asyncio_internals import awaited_future
from handfast._watch.never_wakes import Group, find_never_waking
from handfast._watch.recording.shown_text import LineTexts
from handfast._watch.recording.task_creation import created_at, place_of
from handfast._watch.recording.waiting import waiting_at
from handfast._watch.snapshot import NeverWakes

PERIOD = 60.0

# Finding out where a task waits creates a frame object for each of its coroutines.
_MOST_TASKS = 2000
_MOST_OF_A_PLACE = 200

# Of the time, how much the search may take.
_SHARE = 0.01

Key: TypeAlias = tuple["int | None", str, str]
"""The place, the line at which it waits, and what it waits for."""


@dataclass(slots=True)
class _Waiting:
    task: weakref.ref[Task[Any]]
    future: int
    oldest: float | None
    count: int = 1

    @property
    def unmoved(self) -> Task[Any] | None:
        """The task, if it still awaits the same."""
        task = self.task()
        if task is not None and not task.done() and id(awaited_future(task)) == self.future:
            return task
        return None


class StuckTasks:
    """Call `look` about once a second, in the agent's thread."""

    def __init__(self) -> None:
        self.never_wakes: tuple[NeverWakes, ...] = ()
        """At most 200 tasks of a place are counted."""
        self.not_checked: tuple[str, ...] = ()
        self._noted: dict[Key, _Waiting] = {}
        # What nothing could complete, nothing can complete later: found once is enough.
        self._dead: dict[Key, _Waiting] = {}
        self._due = time.monotonic() + PERIOD

    def look(self, tasks: Callable[[], Iterable[Task[Any]]]) -> None:
        """Look again, if it is time; `tasks` gives the pending ones."""
        now = time.monotonic()
        if now < self._due:
            return
        used = time.thread_time()
        self._due = now + PERIOD
        self._dead = {key: each for key, each in self._dead.items() if each.unmoved is not None}
        found = find_never_waking(self._unmoved())
        dead = set(found.dead)
        self._dead |= {key: noted for key, noted in self._noted.items() if key in dead}
        self.not_checked = tuple(found.not_checked)
        self.never_wakes = tuple(self._shown(key, now) for key in self._dead)
        self._noted = _note(tasks(), now)
        self._due = now + max(PERIOD, (time.thread_time() - used) / _SHARE)

    def _unmoved(self) -> Iterable[Group]:
        for key, noted in self._noted.items():
            task = noted.unmoved
            if task is not None and key not in self._dead:
                yield key, task, noted.count

    def _shown(self, key: Key, now: float) -> NeverWakes:
        place, line, words = key
        noted = self._noted.get(key, self._dead[key])
        oldest = None if noted.oldest is None else now - noted.oldest
        return NeverWakes(noted.count, line, words, oldest, place)


def _note(tasks: Iterable[Task[Any]], now: float) -> dict[Key, _Waiting]:
    """One task of each group of those that are older than the period."""
    lines = LineTexts()
    noted: dict[Key, _Waiting] = {}
    of_place: Counter[int | None] = Counter()
    for task in tasks:
        created, place = created_at(task), place_of(task)
        number = None if place is None else place.id
        if created is not None and now - created < PERIOD:
            continue
        if of_place[number] >= _MOST_OF_A_PLACE:
            continue
        of_place[number] += 1
        stack, words = waiting_at(task, lines)
        if not stack:
            continue
        key = number, stack[-1], words
        known = noted.get(key)
        if known is not None:
            known.count += 1
            if created is not None:
                known.oldest = created if known.oldest is None else min(known.oldest, created)
        else:
            noted[key] = _Waiting(weakref.ref(task), id(awaited_future(task)), created)
        if of_place.total() >= _MOST_TASKS:
            break
    return noted
