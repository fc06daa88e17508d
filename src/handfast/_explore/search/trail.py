"""The trail of a run: which step followed which, as a set of numbers.

A step is known by its task and by the lines at which the task is suspended after it. A run whose
trail has a number that no other run had has done something new: it has taken another path, or the
same paths of two tasks have met in another way. This is to schedules what edge coverage is to
inputs (American fuzzy lop).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from handfast._explore.loop.task_table import task_of


class TrailObserver:
    """An observer that records the pairs of steps that followed each other."""

    def __init__(self) -> None:
        self.edges: set[int] = set()
        # By identity: a later task that has it again is entered when it is created.
        self._numbers: dict[int, int] = {}
        self._last = 0

    def task_created(self, task: asyncio.Task[Any], number: int) -> None:
        self._numbers[id(task)] = number

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        """What a step was is known after it."""

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        task = task_of(handle)
        if task is not None:
            # Numbers only: the hash of a string differs between processes (PYTHONHASHSEED).
            place = self._numbers.get(id(task), -1)
            coro: Any = task.get_coro()
            while (frame := getattr(coro, "cr_frame", None)) is not None:
                place = hash((place, frame.f_code.co_firstlineno, frame.f_lasti))
                coro = coro.cr_await
            self.edges.add(hash((self._last, place)))
            self._last = place

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        """The step in which the task receives it follows."""

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        """A choice counts by what follows from it."""

    def arrives(self, instant: int, channel: str, label: str) -> None:
        """An event counts by the step that it causes."""
