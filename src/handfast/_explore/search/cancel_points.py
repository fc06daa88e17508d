"""Where each task can be cancelled: the ranges of instants in which it is suspended.

A task's own situation changes when it takes a step, and when what it waits for is done and its
wake-up is queued: the window in which most published cancellation bugs occur. A cancel at
the first instant of each range meets every situation once; the instants after it differ only in
what other tasks have done in the meantime.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from handfast._await_stack import await_frames
from handfast._explore.loop.task_table import task_of
from handfast._explore.search.plan import Segment


class CancelPointObserver:
    """An observer that records when each task entered which state."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        # By number: (first instant of the state, the state), while the task lives.
        self._open: dict[int, tuple[int, int]] = {}
        self._seen: list[Segment] = []
        # Which states are of interest, by task and number; and those: (number, first instant).
        self.marks: Callable[[asyncio.Task[Any], int], bool] | None = None
        self.marked: set[tuple[int, int]] = set()
        self._instant = 0
        # The length of the queue before the step: what is beyond it was queued by the step.
        self._queued = 0
        # Tasks that have not taken a step yet: a queued handle of theirs is not a wake-up.
        self._fresh: set[int] = set()

    def task_created(self, task: asyncio.Task[Any], number: int) -> None:
        self._numbers[task] = number
        self._open[number] = (self._instant, _state(task, "new"))
        self._fresh.add(number)

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        self._instant = instant + 1  # a task that this step creates can be cancelled after it
        self._queued = queued

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        task = task_of(handle)
        if task is not None:
            self._fresh.discard(self._numbers.get(task, -1))
            self._change(task, instant, "waits")
        for at in range(self._queued, len(ready)):
            woken = task_of(ready[at])
            if woken is not None and self._numbers.get(woken, -1) not in self._fresh:
                self._change(woken, instant, "woken")

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        self._change(task, instant, "cancelled")

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        """A choice does not change where a task is suspended."""

    def arrives(self, instant: int, channel: str, label: str) -> None:
        """An event only queues a handle; a task is woken when that one runs."""

    def finish(self, instant: int) -> list[Segment]:
        """All ranges, when the run has ended at `instant`."""
        for number, (first, state) in self._open.items():
            self._close(number, first, instant, state)
        self._open.clear()
        return sorted(self._seen, key=lambda segment: (segment.first, segment.task))

    def _change(self, task: asyncio.Task[Any], instant: int, how: str) -> None:
        number = self._numbers.get(task)
        if number is None or number not in self._open:
            return
        first, state = self._open[number]
        if task.done():
            del self._open[number]
        else:
            self._open[number] = (instant, _state(task, how))
            if self.marks is not None and self.marks(task, number):
                self.marked.add((number, instant))
        self._close(number, first, instant - 1, state)

    def _close(self, number: int, first: int, last: int, state: int) -> None:
        if last >= first:
            self._seen.append(Segment(number, first, last, state))


def _state(task: asyncio.Task[Any], how: str) -> int:
    """The lines of the whole await chain as one number, the same in every process."""
    state = _number(how)
    for frame in await_frames(task.get_coro()):
        state = hash((state, _number(frame.f_code.co_qualname), frame.f_lasti))
    return state


@cache
def _number(text: str) -> int:
    # Not `hash`: that of a string differs between processes (PYTHONHASHSEED).
    return zlib.crc32(text.encode())
