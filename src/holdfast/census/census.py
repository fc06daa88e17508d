"""Everything that is alive at one moment, and what has come since another.

A check that cannot see is named in `not_checked`: nothing seen there does not mean nothing there.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

from holdfast.census import (
    children,
    connections,
    descriptors,
    errors,
    generators,
    memory,
    resources,
    retained,
    tasks,
    threads,
    timers,
)
from holdfast.census.thing import Thing

__all__ = ["CHECKS", "DEFAULT", "ON_REQUEST", "Census", "take"]

Look = Callable[[AbstractEventLoop | None], Iterable[Thing]]

_LOOKS: Mapping[str, Look] = {
    "tasks": tasks.all_alive,
    "errors": errors.all_unread,
    "timers": timers.all_armed,
    "generators": generators.all_open,
    "children": children.all_children,
    "threads": threads.all_running,
    "connections": connections.all_open,
    "resources": resources.all_open,
    "descriptors": descriptors.all_open,
    "retained": retained.all_kept,
    "memory": memory.all_grown,
}
_BLIND: Mapping[str, Callable[[AbstractEventLoop | None], Iterable[str]]] = {
    "timers": timers.blind_spots,
    "generators": generators.blind_spots,
    "children": children.blind_spots,
    "connections": connections.blind_spots,
    "descriptors": descriptors.blind_spots,
    "memory": memory.blind_spots,
}

CHECKS: tuple[str, ...] = tuple(_LOOKS)
ON_REQUEST: tuple[str, ...] = ("descriptors", "retained", "memory")
DEFAULT: tuple[str, ...] = tuple(check for check in CHECKS if check not in ON_REQUEST)


class Census:
    """What was alive at one moment.

    >>> import asyncio
    >>> async def main():
    ...     before = take(["tasks"])
    ...     task = asyncio.create_task(asyncio.sleep(60), name="poll")
    ...     new = take(["tasks"]).since(before)
    ...     task.cancel()
    ...     return [thing.what for thing in new]
    >>> asyncio.run(main())
    ["task 'poll' running sleep"]
    """

    __slots__ = ("not_checked", "things")

    def __init__(self, things: Iterable[Thing], not_checked: Iterable[str] = ()) -> None:
        self.things = tuple(things)
        self.not_checked = tuple(not_checked)

    @property
    def keys(self) -> frozenset[Hashable]:
        return frozenset(thing.key for thing in self.things)

    def __add__(self, other: Census) -> Census:
        """Both, of other checks each."""
        return Census(self.things + other.things, self.not_checked + other.not_checked)

    def since(self, before: Census) -> list[Thing]:
        """What was not there before."""
        known = before.keys
        return [thing for thing in self.things if thing.key not in known]

    def counts(self) -> dict[str, int]:
        """How many things each check sees."""
        return dict(Counter(thing.check for thing in self.things))


def take(checks: Collection[str] = DEFAULT, *, loop: AbstractEventLoop | None = None) -> Census:
    """Look at everything once. With `loop`, at what belongs to that loop alone."""
    things = [thing for check in checks for thing in _LOOKS[check](loop)]
    blind = [spot for check in checks for spot in _BLIND.get(check, _sees_all)(loop)]
    return Census(things, blind)


def _sees_all(loop: AbstractEventLoop | None) -> Iterable[str]:
    return ()
