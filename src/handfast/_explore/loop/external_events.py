"""Events from outside the loop: what is on its way, and in which order it may arrive.

A channel is one source whose events keep their order (the bytes of one stream, the hand-overs of
one thread). Across channels every order is possible; which one it is, is a choice of the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any


class Event:
    """Something that will arrive from outside, not before `at`."""

    __slots__ = ("arrive", "at", "channel", "faults", "label", "order", "owed")

    def __init__(
        self,
        channel: Channel,
        at: float,
        order: int,
        label: str,
        arrive: Callable[[], Any],
        faults: dict[str, Callable[[], Any]],
    ) -> None:
        self.channel = channel
        self.at = at
        self.order = order
        self.label = label
        # Called by the loop at the moment of arrival. It should do no more than a selector does:
        # put a handle into the queue (`loop.enqueue`), or let a thread run.
        self.arrive = arrive
        # What can arrive instead, by its name in the option `faults`.
        self.faults = faults
        # It happened before something that has arrived already, so it arrives in the same poll.
        self.owed = False

    def owe(self) -> None:
        """Something that happened later has arrived: this arrives in the same poll, without faults."""
        self.owed = True
        self.faults = {}

    def __repr__(self) -> str:
        return f"<{self.label} on {self.channel.name} at {self.at:.3f}>"


class Channel:
    """One source of events.

    `between`: an event need not wait for a poll. What a thread hands over is appended to the queue
    between any two handles.
    """

    __slots__ = ("_events", "between", "name", "owner", "queue")

    def __init__(
        self, events: ExternalEvents, name: str, *, between: bool = False, owner: object = None
    ) -> None:
        self._events = events
        self.name = name
        # The task that opened it: this distinguishes channels of the same name.
        self.owner = owner
        self.between = between
        self.queue: deque[Event] = deque()

    def post(
        self,
        arrive: Callable[[], Any],
        *,
        label: str,
        after: float = 0.0,
        faults: dict[str, Callable[[], Any]] | None = None,
    ) -> Event:
        """Add an event. It arrives after everything that was posted here before it."""
        return self._events.post(self, arrive, label, after, faults or {})

    def drop(self, event: Event) -> None:
        """Remove an event that will not arrive."""
        self._events.drop(event)

    def clear(self) -> None:
        """Remove all events of this channel."""
        for event in tuple(self.queue):
            self._events.drop(event)


class ExternalEvents:
    """Every channel of one run."""

    __slots__ = ("_attend", "_now", "_posted", "between", "waiting")

    def __init__(self, now: Callable[[], float], attend: Callable[[], None]) -> None:
        self._now = now
        # Called when something can arrive between two handles that could not before.
        self._attend = attend
        self._posted = 0
        # The channels on which something is on its way, in the order in which that began.
        self.waiting: dict[Channel, None] = {}
        # How many of them need not wait for a poll.
        self.between = 0

    def channel(self, name: str, *, between: bool = False, owner: object = None) -> Channel:
        return Channel(self, name, between=between, owner=owner)

    def post(
        self,
        channel: Channel,
        arrive: Callable[[], Any],
        label: str,
        after: float,
        faults: dict[str, Callable[[], Any]],
    ) -> Event:
        self._posted += 1
        at = self._now() + after
        if channel.queue:  # first posted, first to arrive
            at = max(at, channel.queue[-1].at)
        else:
            self.waiting[channel] = None
            if channel.between:
                self.between += 1
                self._attend()
        event = Event(channel, at, self._posted, label, arrive, faults)
        channel.queue.append(event)
        return event

    def drop(self, event: Event) -> None:
        channel = event.channel
        channel.queue.remove(event)
        if not channel.queue:
            del self.waiting[channel]
            self.between -= channel.between

    def next_events(self, until: float, *, between: bool = False) -> list[Event]:
        """The next event of each channel that may arrive up to `until`: earliest first, then in
        the order in which they were posted. `between`: only those that need not wait for a poll."""
        heads = [
            channel.queue[0]
            for channel in self.waiting
            if channel.queue[0].at <= until and channel.between >= between
        ]
        if len(heads) > 1:
            heads.sort(key=_due)
        return heads

    def first(self) -> float | None:
        """When the next thing arrives at the earliest; None if nothing is on its way."""
        if not self.waiting:
            return None
        return min([channel.queue[0].at for channel in self.waiting])


_due = attrgetter("at", "order")
