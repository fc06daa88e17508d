"""Which of the things that are alive were left behind by somebody: decided here, and nowhere else.

Pure decisions on a census: nothing is waited for, ended or printed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from holdfast.census import Census, Thing

__all__ = ["SEEN_ON_A_LOOP", "left_by", "left_on_loop", "unowned"]

_OF_A_LOOP = ("tasks", "timers", "generators", "connections")
SEEN_ON_A_LOOP = (*_OF_A_LOOP, "resources")
"""What is looked at before a loop closes: what cannot outlive it, and what that may be a part of.
A session may still be closed, and the error of a task be read, when the loop is gone."""


def left_by(census: Census, owners: Collection[object], known: Collection[Hashable]) -> list[Thing]:
    """What belongs to one of `owners`; and what nobody saw being made and was not `known`."""
    return _whole(
        census,
        (
            thing
            for thing in census.things
            if thing.owner in owners or (_is_unowned(thing) and thing.key not in known)
        ),
    )


def left_on_loop(census: Census) -> list[Thing]:
    """Everything that somebody owns, or that nobody saw being made."""
    owned = (
        thing
        for thing in census.things
        if thing.check in _OF_A_LOOP and (thing.birth is None or thing.owner is not None)
    )
    return _whole(census, owned)


def unowned(census: Census) -> frozenset[Hashable]:
    """The keys of what nobody saw being made."""
    return frozenset(thing.key for thing in census.things if _is_unowned(thing))


def _is_unowned(thing: Thing) -> bool:
    return thing.birth is None and thing.owner is None


def _whole(census: Census, things: Iterable[Thing]) -> list[Thing]:
    """Those that have not been told, and are not a part of something that will be."""
    untold = [thing for thing in things if thing.birth is None or not thing.birth.told]
    if not untold:
        return untold
    alive = census.keys
    return [thing for thing in untold if thing.part_of is None or thing.part_of not in alive]
