"""Where each task can be cancelled: the stretches of instants in which it stands still.

A task's own situation changes when it takes a step, and when what it waits for is done and its
wake-up is queued: the window after which most published cancellation bugs are found. A cancel at
the first instant of each stretch meets every situation once; the instants after it differ only
in what the others have done meanwhile.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.explore.plan import Segment
from holdfast.runtime.stacks import await_frames

__all__ = ["Segments"]


class Segments:
    """An observer that writes down when each task entered which state."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        # By number: (first instant of the state, the state), while the task lives.
        self._open: dict[int, tuple[int, int]] = {}
        self._seen: list[Segment] = []
        self._instant = 0
        # The length of the queue before the step, so that what the step has queued can be told.
        self._queued = 0
        # Those that have not taken a step yet: a queued handle of theirs is no wake-up.
        self._fresh: set[int] = set()

    def born(self, task: asyncio.Task[Any], number: int) -> None:
        self._numbers[task] = number
        self._open[number] = (self._instant, _state(task, "new"))
        self._fresh.add(number)

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        self._instant = instant + 1  # whoever is born in this step can be cancelled after it
        self._queued = queued

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        task = _task_of(handle)
        if task is not None:
            self._fresh.discard(self._numbers.get(task, -1))
            self._change(task, instant, "waits")
        for at in range(self._queued, len(ready)):
            woken = _task_of(ready[at])
            if woken is not None and self._numbers.get(woken, -1) not in self._fresh:
                self._change(woken, instant, "woken")

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        self._change(task, instant, "cancelled")

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        """Choices change nothing about where a task stands."""

    def arrives(self, instant: int, channel: str, label: str) -> None:
        """What comes from outside queues a handle; a task is woken when that one runs."""

    def finish(self, instant: int) -> list[Segment]:
        """All stretches, when the run has ended at `instant`."""
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
        self._close(number, first, instant - 1, state)

    def _close(self, number: int, first: int, last: int, state: int) -> None:
        if last >= first:
            self._seen.append(Segment(number, first, last, state))


def _task_of(handle: Any) -> asyncio.Task[Any] | None:
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


def _state(task: asyncio.Task[Any], how: str) -> int:
    """The lines of the whole await chain as one number, the same in every process."""
    state = zlib.crc32(how.encode())
    for frame in await_frames(task.get_coro()):
        place = f"{frame.f_code.co_qualname}:{frame.f_lasti}"
        state = zlib.crc32(place.encode(), state)
    return state
