"""The world outside the loop: what is on its way, and in which order it may arrive.

A channel is one source whose events keep their order (the bytes of one stream, the hand-overs of
one thread). Across channels every order is possible; which one comes true is the loop's choice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Channel", "Event", "World"]


class Event:
    """Something that will arrive from outside, not before `at`."""

    __slots__ = ("arrive", "at", "channel", "faults", "label", "order")

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
        # Called by the loop at the moment of arrival. It should do no more than a selector would:
        # put a handle into the queue (`loop.ready`), or give a thread its turn.
        self.arrive = arrive
        # What can come instead, by the name under which `faults=` asks for it.
        self.faults = faults

    def __repr__(self) -> str:
        return f"<{self.label} on {self.channel.name} at {self.at:.3f}>"


class Channel:
    """One source outside. `between` says that it need not wait for a poll: a thread's hand-over
    lands between any two handles."""

    __slots__ = ("_world", "between", "name", "owner", "queue")

    def __init__(
        self, world: World, name: str, *, between: bool = False, owner: object = None
    ) -> None:
        self._world = world
        self.name = name
        # Whoever opened it: channels of one name are told apart by this.
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
        """Something is on its way: it arrives after everything posted here before it."""
        return self._world.post(self, arrive, label, after, faults or {})

    def drop(self, event: Event) -> None:
        """It will not come any more."""
        self._world.drop(event)

    def clear(self) -> None:
        """Nothing that is on its way here will come."""
        for event in tuple(self.queue):
            self._world.drop(event)


class World:
    """Every channel of one run."""

    __slots__ = ("_attend", "_now", "_posted", "between", "waiting")

    def __init__(self, now: Callable[[], float], attend: Callable[[], None]) -> None:
        self._now = now
        # Called when something can come between two handles that could not before.
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
        if channel.queue:  # first posted, first come
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

    def heads(self, until: float, *, between: bool = False) -> list[Event]:
        """The next event of each channel that may arrive up to `until`: earliest first, then in
        the order in which they were posted. `between`: only those that need not wait for a poll."""
        heads = [channel.queue[0] for channel in self.waiting if channel.between >= between]
        return sorted((e for e in heads if e.at <= until), key=_due)

    def first(self) -> float | None:
        """When the next thing arrives at the earliest; None if nothing is on its way."""
        return min((channel.queue[0].at for channel in self.waiting), default=None)


def _due(event: Event) -> tuple[float, int]:
    return event.at, event.order
