"""Readiness of simulated sockets: the events that a selector would report, and the table that
asyncio's transports use in place of a selector.

An event is level-triggered, as in a real selector: while a handle is registered and the socket is
ready, one event is on its way. A program sees the kernel's buffers only when it reads, so it cannot
tell unread bytes from bytes that are still on their way; this is why one event is enough.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handfast._explore.loop.external_events import Channel, Event

if TYPE_CHECKING:
    from handfast._explore.simulation.network.kernel import Kernel


class Readiness:
    """One socket and one direction: the handle that is registered, and the event on its way to it."""

    __slots__ = ("_channel", "_due", "_event", "_ready", "handle")

    def __init__(self, channel: Channel, ready: deque[asyncio.Handle]) -> None:
        self._channel = channel
        self._ready = ready
        self._event: Event | None = None
        # The handle is in the queue of the loop and has not run yet.
        self._due = False
        self.handle: asyncio.Handle | None = None

    def watch(self, handle: asyncio.Handle | None) -> None:
        """Register the handle that runs when the socket is ready; None: no handle."""
        # asyncio registers the same handle again when it adds the other direction.
        if handle is not self.handle:
            self.handle = handle
            self._due = False
            if handle is None and self._event is not None:
                self._channel.drop(self._event)
                self._event = None

    def handled(self) -> None:
        """The handle has run, and makes the call that it was registered for."""
        self._due = False

    def update(
        self, is_ready: bool, label: str, faults: dict[str, Callable[[], Any]] | None = None
    ) -> None:
        """Post the event if the socket is ready, and drop it if it is not."""
        if is_ready and not self._due and self._event is None:
            self._event = self._channel.post(self.arrive, label=label, faults=faults)
        elif not is_ready and self._event is not None:
            self._channel.drop(self._event)
            self._event = None

    def arrive(self) -> None:
        """Put the handle at the end of the queue, as a selector does."""
        assert self.handle is not None, "an event without a handle was not dropped"
        self._event = None
        self._due = True
        self._ready.append(self.handle)


class SocketTable:
    """The part of `selectors.BaseSelector` that `asyncio.selector_events` uses: which handle is
    registered for which socket. Nothing is selected here; the sockets post their events."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._keys: dict[int, selectors.SelectorKey] = {}

    def get_map(self) -> dict[int, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fd: int) -> selectors.SelectorKey:
        return self._keys[fd]

    def register(self, fd: int, events: int, data: Any) -> None:
        self._keys[fd] = selectors.SelectorKey(fd, fd, events, data)
        self._kernel.sockets[fd].watch(*data)

    modify = register

    def unregister(self, fd: int) -> None:
        del self._keys[fd]
        sock = self._kernel.sockets.get(fd)
        if sock is not None:  # it may have been closed while registered
            sock.watch(None, None)
