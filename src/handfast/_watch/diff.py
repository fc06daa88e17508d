"""What changed between two snapshots.

A place is the same if its file, function and line are. If the program was edited between the two, its
lines have moved: then a place that is the only one left of its file and function on both sides is the
same too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from handfast._watch.snapshot import CreationPlace, NeverWakes, Snapshot

Change = Literal["new", "gone", "grew", "shrank"]
_K = TypeVar("_K")


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """A place whose number of live tasks is another one than before."""

    change: Change
    place: CreationPlace
    """As it is in the later snapshot that has it."""
    before: int
    after: int
    created: int | None
    """How many tasks it created between; None if the process was started anew."""

    @property
    def more(self) -> int:
        """By how many tasks it grew."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class CountChange:
    """A number of tasks that is another one than before, such as those that a container keeps."""

    change: Change
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """What changed between two snapshots of a program."""

    seconds: float
    same_process: bool
    alive_before: int
    alive_after: int
    places: tuple[PlaceChange, ...]
    """The one that grew most comes first."""
    kept: tuple[CountChange, ...]
    never_wakes: tuple[CountChange, ...]


def compare(before: Snapshot, after: Snapshot) -> SnapshotDiff:
    """Return what is new, gone, or another number in the second snapshot."""
    same = before.process.pid == after.process.pid and (
        after.process.watched_for >= before.process.watched_for
    )
    changes = [_place_change(old, new, same) for old, new in _pairs(before.places, after.places)]
    changed = [each for each in changes if each is not None]
    changed.sort(key=lambda each: (-each.more, each.place.file, each.place.line))
    return SnapshotDiff(
        after.taken_at - before.taken_at,
        same,
        before.alive,
        after.alive,
        tuple(changed),
        _counts(
            _total((each.container, each.count) for each in before.kept),
            _total((each.container, each.count) for each in after.kept),
        ),
        _counts(_dead(before.never_wakes), _dead(after.never_wakes)),
    )


def _place_change(
    old: CreationPlace | None, new: CreationPlace | None, same: bool
) -> PlaceChange | None:
    place = new or old
    assert place is not None
    before, after = old.alive if old else 0, new.alive if new else 0
    if before == after:
        return None
    created = (new.created if new else 0) - (old.created if old else 0)
    how = _change(None if old is None else before, after)
    return PlaceChange(how, place, before, after, max(0, created) if same else None)


def _change(before: int | None, after: int) -> Change:
    if before is None:
        return "new"
    if not after:
        return "gone"
    return "grew" if after > before else "shrank"


# --- which place is which ------------------------------------------------------------------------


def _pairs(
    before: Iterable[CreationPlace], after: Iterable[CreationPlace]
) -> list[tuple[CreationPlace | None, CreationPlace | None]]:
    old, new = _merged(before), _merged(after)
    both = [key for key in new if key in old]
    pairs: list[tuple[CreationPlace | None, CreationPlace | None]]
    pairs = [(old.pop(key), new.pop(key)) for key in both]
    old_only, new_only = _by_function(old.values()), _by_function(new.values())
    for name, places in new_only.items():
        former = old_only.get(name, [])
        if len(places) == len(former) == 1:
            pairs.append((former.pop(), places.pop()))
    pairs += [(None, each) for places in new_only.values() for each in places]
    pairs += [(each, None) for places in old_only.values() for each in places]
    return pairs


def _merged(places: Iterable[CreationPlace]) -> dict[tuple[str, str, int], CreationPlace]:
    """The places by file, function and line; a line with two calls is one."""
    merged: dict[tuple[str, str, int], CreationPlace] = {}
    for each in places:
        key = (each.file, each.function, each.line)
        if key in merged:
            first = merged[key]
            each = replace(
                first, alive=first.alive + each.alive, created=first.created + each.created
            )
        merged[key] = each
    return merged


def _by_function(places: Iterable[CreationPlace]) -> dict[tuple[str, str], list[CreationPlace]]:
    found: dict[tuple[str, str], list[CreationPlace]] = {}
    for each in places:
        found.setdefault((each.file, each.function), []).append(each)
    return found


# --- kept and dead tasks -------------------------------------------------------------------------


def _dead(groups: Iterable[NeverWakes]) -> dict[str, int]:
    return _total((f"{each.waits_for} at {each.waiting_at}", each.count) for each in groups)


def _total(counts: Iterable[tuple[_K, int]]) -> dict[_K, int]:
    total: dict[_K, int] = {}
    for name, count in counts:
        total[name] = total.get(name, 0) + count
    return total


def _counts(before: dict[str, int], after: dict[str, int]) -> tuple[CountChange, ...]:
    changes = [
        CountChange(_change(before.get(name), count), name, before.get(name, 0), count)
        for name, count in after.items()
        if before.get(name, 0) != count
    ]
    changes += [
        CountChange("gone", name, count, 0)
        for name, count in before.items()
        if count and name not in after
    ]
    return tuple(sorted(changes, key=lambda each: each.before - each.after))
