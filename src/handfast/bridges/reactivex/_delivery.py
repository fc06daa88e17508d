"""Calls the observer with one outcome at a time, optionally in the order of the items.

Outcomes come from any thread, mostly that of the loop. As Rx demands, calls to the observer never
overlap, and its completion is called last, after the outcome of every item. No lock is held while
the observer is called.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from reactivex.abc import ObserverBase

T = TypeVar("T")


class Delivery(Generic[T]):
    """Delivers the outcomes of one subscription; `on_delivered` is called after each."""

    def __init__(
        self, observer: ObserverBase[T], *, ordered: bool, on_delivered: Callable[[], object]
    ) -> None:
        self._observer = observer
        self._ordered = ordered
        self._on_delivered = on_delivered
        self._lock = threading.Lock()
        self._ready: deque[T] = deque()
        self._early: dict[int, T] = {}  # by position: those whose predecessors are missing
        self._next = 0  # the position to deliver next
        self._reserved = 0
        self._delivered = 0
        self._ended = False
        self._error: Exception | None = None
        self._busy = False  # a thread is delivering
        self._stopped = False
        self.completed = False  # the observer's on_completed or on_error was called

    def reserve(self) -> int:
        """Return the position of one more item, whose outcome will come."""
        with self._lock:
            self._reserved += 1
            return self._reserved - 1

    def deliver(self, position: int, outcome: T) -> None:
        """Deliver the outcome of the item at this position."""
        with self._lock:
            if not self._ordered:
                self._ready.append(outcome)
            else:
                self._early[position] = outcome
                while self._next in self._early:
                    self._ready.append(self._early.pop(self._next))
                    self._next += 1
        self._flush()

    def end(self, error: Exception | None = None) -> None:
        """No more items come. Only the first call counts."""
        with self._lock:
            if not self._ended:
                self._ended, self._error = True, error
        self._flush()

    def stop(self) -> None:
        """Never call the observer again."""
        with self._lock:
            self._stopped = True
            self._ready.clear()
            self._early.clear()

    def _flush(self) -> None:
        """Call the observer until nothing is ready. If another thread does so, return at once: it
        will see what was added."""
        with self._lock:
            if self._busy:
                return
            self._busy = True
        try:
            while (call := self._next_call()) is not None:
                call()
        except BaseException:
            self.stop()  # an observer that fails is not called again
            raise

    def _next_call(self) -> Callable[[], None] | None:
        with self._lock:
            if self._ready and not self._stopped:
                return partial(self._call_next, self._ready.popleft())
            if self._ended and self._delivered == self._reserved and not self._stopped:
                self._stopped = True
                return self._call_end
            self._busy = False
            return None

    def _call_next(self, outcome: T) -> None:
        self._delivered += 1
        try:
            self._observer.on_next(outcome)
        finally:
            self._on_delivered()

    def _call_end(self) -> None:
        try:
            if self._error is None:
                self._observer.on_completed()
            else:
                self._observer.on_error(self._error)
        finally:
            self.completed = True
