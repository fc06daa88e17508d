"""The moment at which a selector would say that a socket can be read, or written.

It is level-triggered, as the real one: as long as somebody watches and there is something to tell,
one event is on its way. A program sees the kernel's buffers only when it reads, so bytes that wait
there unread and bytes still on their way are the same to it; this is why one event is enough.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.explore.world import Channel, Event

__all__ = ["Readiness"]


class Readiness:
    """For one socket and one direction: who watches, and the event that is on its way to it."""

    __slots__ = ("_channel", "_due", "_event", "_ready", "handle")

    def __init__(self, channel: Channel, ready: deque[asyncio.Handle]) -> None:
        self._channel = channel
        self._ready = ready
        self._event: Event | None = None
        # The loop was told, and the handle that was put into its queue has not looked yet.
        self._due = False
        self.handle: asyncio.Handle | None = None

    def watch(self, handle: asyncio.Handle | None) -> None:
        """From now on this handle is run when there is something; None: nobody watches."""
        if handle is not self.handle:
            self.handle = handle
            self._due = False
            if handle is None and self._event is not None:
                self._channel.drop(self._event)
                self._event = None

    def looked(self) -> None:
        """The handle does what it was run for."""
        self._due = False

    def update(
        self, there: bool, label: str, faults: dict[str, Callable[[], Any]] | None = None
    ) -> None:
        """Whether there is something to tell the watcher now."""
        if there and not self._due and self._event is None:
            self._event = self._channel.post(self.arrive, label=label, faults=faults)
        elif not there and self._event is not None:
            self._channel.drop(self._event)
            self._event = None

    def arrive(self) -> None:
        """What a selector does: the handle goes to the end of the queue."""
        assert self.handle is not None, "an event without a watcher was not dropped"
        self._event = None
        self._due = True
        self._ready.append(self.handle)
