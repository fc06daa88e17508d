"""Outcomes leave one at a time, in the order of their items where that is asked for.

They come in from whichever thread ends the work on an item, mostly the loop's. The promise is that
of Rx: calls to the observer never overlap, and the end comes last, after the outcome of every
item that was taken in. No lock is held while the observer is called.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from reactivex.abc import ObserverBase

__all__ = ["Delivery"]

T = TypeVar("T")


class Delivery(Generic[T]):
    """The way out of one subscription. `delivered` is called after each outcome."""

    def __init__(
        self, observer: ObserverBase[T], *, ordered: bool, delivered: Callable[[], object]
    ) -> None:
        self._observer = observer
        self._ordered = ordered
        self._delivered = delivered
        self._lock = threading.Lock()
        self._ready: deque[T] = deque()
        self._early: dict[int, T] = {}  # by place: those whose predecessors are still to come
        self._next = 0  # the place that leaves next
        self._taken = 0
        self._left = 0
        self._ended = False
        self._error: Exception | None = None
        self._busy = False  # somebody is delivering
        self._stopped = False
        self.over = False  # the observer has been told of the end

    def take(self) -> int:
        """A place for one more item, whose outcome will come."""
        with self._lock:
            self._taken += 1
            return self._taken - 1

    def bring(self, place: int, outcome: T) -> None:
        """The outcome of the item with this place."""
        with self._lock:
            if not self._ordered:
                self._ready.append(outcome)
            else:
                self._early[place] = outcome
                while self._next in self._early:
                    self._ready.append(self._early.pop(self._next))
                    self._next += 1
        self._deliver()

    def end(self, error: Exception | None = None) -> None:
        """No more items come. The first end counts."""
        with self._lock:
            if not self._ended:
                self._ended, self._error = True, error
        self._deliver()

    def stop(self) -> None:
        """The observer is not called any more."""
        with self._lock:
            self._stopped = True
            self._ready.clear()
            self._early.clear()

    def _deliver(self) -> None:
        """Call the observer until nothing is ready; whoever comes meanwhile need not wait."""
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
                return partial(self._hand_over, self._ready.popleft())
            if self._ended and self._left == self._taken and not self._stopped:
                self._stopped = True
                return self._finish
            self._busy = False
            return None

    def _hand_over(self, outcome: T) -> None:
        self._left += 1
        try:
            self._observer.on_next(outcome)
        finally:
            self._delivered()

    def _finish(self) -> None:
        try:
            if self._error is None:
                self._observer.on_completed()
            else:
                self._observer.on_error(self._error)
        finally:
            self.over = True
