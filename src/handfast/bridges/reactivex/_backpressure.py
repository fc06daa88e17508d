"""Backpressure: the number of items in flight is limited, and a source that emits more waits.

A push source cannot be slowed down, but the call that emits can block. It never blocks a thread
in which an event loop runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from handfast._asyncio_internals import running_loop
from handfast.errors import HandfastError

T = TypeVar("T")

# "block" the emitting thread, end the stream with an "error", or drop the item: the function is
# called with each dropped one.
WhenFull: TypeAlias = Literal["block", "error"] | Callable[[T], object]

# How often a blocked emitter checks that the loop still runs: a loop does not announce that it
# stops.
_INTERVAL = 0.05


class Overflow(HandfastError, RuntimeError):
    """A source emitted faster than its items were processed, and could not be made to wait."""


class InFlightLimit:
    """A semaphore for items in flight that can be closed. For threads."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._closed = False
        self._changed = threading.Condition()

    def try_acquire(self) -> bool:
        """Take a place if one is free."""
        with self._changed:
            if self._free == 0 or self._closed:
                return False
            self._free -= 1
            return True

    def acquire(self, on_wait: Callable[[], object]) -> bool:
        """Wait for a place and take it; return False if the limit is closed.

        `on_wait` is called at intervals, and may notice that no place will ever be free.
        """
        while not self.try_acquire():
            with self._changed:
                if self._closed:
                    return False
                notified = self._free or self._changed.wait(_INTERVAL)
            if not notified:
                on_wait()
        return True

    def release(self) -> None:
        """Give a place back."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def close(self) -> None:
        """Give out no more places, and wake the threads that wait for one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def may_block() -> bool:
    """Whether this thread may wait: not if an event loop runs in it."""
    return running_loop() is None
