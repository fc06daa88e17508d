"""Back-pressure: so many items may be under way, and whoever brings one more has to wait.

A push source cannot be told to slow down; it can be kept from coming back for more. That blocks
the emitting thread, and never one in which an event loop runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from holdfast import HoldfastError

__all__ = ["Overflow", "Room", "WhenFull", "may_block"]

T = TypeVar("T")

# "block" the emitting thread, end the stream with an "error", or drop the item: a function is
# given each one that is dropped, so that nothing goes away unseen.
WhenFull: TypeAlias = Literal["block", "error"] | Callable[[T], object]

# How often a blocked emitter looks whether there is still a loop that could make room. A loop does
# not announce that it stops.
_HEARTBEAT = 0.05


class Overflow(HoldfastError, RuntimeError):
    """A source was faster than its items could be worked on, and could not be made to wait."""


class Room:
    """How many items are under way, and who waits to bring one more."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity
        self._closed = False
        self._changed = threading.Condition()

    def try_enter(self) -> bool:
        """Take a place if one is free."""
        with self._changed:
            if self._free == 0 or self._closed:
                return False
            self._free -= 1
            return True

    def enter(self, look: Callable[[], object]) -> bool:
        """Take a place, and wait for one if need be; False if the room was closed meanwhile.

        `look` is called from time to time, and may find out that nobody will ever leave.
        """
        while not self.try_enter():
            with self._changed:
                if self._closed:
                    return False
                came = self._free or self._changed.wait(_HEARTBEAT)
            if not came:
                look()
        return True

    def leave(self) -> None:
        """Give a place back."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def close(self) -> None:
        """Nobody comes in any more, and nobody waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def may_block() -> bool:
    """Whether this thread can be made to wait: not where an event loop would wait with it."""
    return asyncio._get_running_loop() is None
