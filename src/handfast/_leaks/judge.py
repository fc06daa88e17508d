"""Which live objects are leaks. This is decided here and nowhere else.

An object is a leak of an owner (a test, a fixture, a `no_leaks` block) that has ended if

- the owner created it, or its creation was not recorded and it was not there before;
- no library keeps it on purpose (`handfast._census.known_libraries`);
- it was not reported before;
- it is not part of an object that is reported itself;
- it is still there after the grace period (`settle`), and does not end by itself.

Ignores and baselines apply later, to the reported leaks. All functions here are pure.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from handfast._census import LiveObject, Snapshot
from handfast._census.kinds import KINDS

SWALLOWS_CANCELLATION = "HF501"
"""The code of a leaked task that has survived its cancellation."""

_PER_LOOP = tuple(name for name, kind in KINDS.items() if kind.per_loop)
CHECKED_ON_CLOSE = (*_PER_LOOP, "resources")
"""What is listed before a loop closes: what cannot outlive it, and what that may be part of. A
session may still be closed, and the error of a task be retrieved, after that."""


def leaked_by(
    snapshot: Snapshot, owners: Collection[object], known: Collection[Hashable]
) -> list[LiveObject]:
    """What `owners` created, and what is new and has no recorded creation."""
    return _reportable(
        snapshot,
        (
            live
            for live in snapshot.objects
            if live.owner in owners or (_has_no_owner(live) and live.key not in known)
        ),
    )


def leaked_on_loop(snapshot: Snapshot) -> list[LiveObject]:
    """What any owner created on a loop that closes, and what has no recorded creation."""
    return _reportable(
        snapshot,
        (
            live
            for live in snapshot.objects
            if live.check in _PER_LOOP and (live.creation is None or live.owner is not None)
        ),
    )


def keys_without_owner(snapshot: Snapshot) -> frozenset[Hashable]:
    """The keys of what has no recorded creation."""
    return frozenset(live.key for live in snapshot.objects if _has_no_owner(live))


def remaining(leaked: Iterable[LiveObject]) -> list[LiveObject]:
    """What is a leak after the grace period: not what ends by itself, however long that takes."""
    return [live for live in leaked if not live.ends_by_itself]


def kept_by_no_library(objects: Iterable[LiveObject]) -> list[LiveObject]:
    """The objects that no library keeps on purpose."""
    return [live for live in objects if not live.library]


def _has_no_owner(live: LiveObject) -> bool:
    return live.creation is None and live.owner is None


def _reportable(snapshot: Snapshot, candidates: Iterable[LiveObject]) -> list[LiveObject]:
    unreported = [
        live
        for live in kept_by_no_library(candidates)
        if live.creation is None or not live.creation.reported
    ]
    if not unreported:
        return unreported
    alive = {live.key for live in kept_by_no_library(snapshot.objects)}
    return [live for live in unreported if (whole := live.part_of()) is None or whole not in alive]
