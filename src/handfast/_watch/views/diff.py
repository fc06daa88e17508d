"""What changed between two snapshots, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from handfast._watch.diff import CountChange, PlaceChange, SnapshotDiff
from handfast._watch.views.cells import age, count_of, fit, place_names, printable

_MOST = 50


def diff(changes: SnapshotDiff, width: int = 100, most: int = _MOST) -> str:
    """Return the changes as text, those that grew most first."""
    more = changes.alive_after - changes.alive_before
    lines = [
        f"after {age(max(0.0, changes.seconds))}: alive {changes.alive_before:,} → "
        f"{changes.alive_after:,} ({more:+,})"
    ]
    if not changes.same_process:
        lines.append(
            "The snapshots are of two processes, so numbers of created tasks are not shown."
        )
    if changes.places:
        lines += ["", *_place_lines(changes.places[:most], width)]
        if len(changes.places) > most:
            lines.append(f"and {count_of(len(changes.places) - most, 'more place')}")
    lines += _counts("finished, but kept in", changes.kept)
    lines += _counts("never wakes", changes.never_wakes)
    if len(lines) == 1:
        lines.append("No place has more or fewer tasks.")
    return "\n".join(lines) + "\n"


def _place_lines(places: Iterable[PlaceChange], width: int) -> Iterator[str]:
    places = list(places)
    # Places of two snapshots may have the same number.
    names = [next(iter(place_names([each.place]).values())) for each in places]
    columns = max(20, width - 46)
    yield f"{'':6}  {'alive':>9}  {'before':>8}  {'now':>8}  {'created':>8}  created at"
    for each, name in zip(places, names, strict=True):
        created = "-" if each.created is None else f"+{each.created:,}"
        yield (
            f"{each.change:6}  {each.more:>+9,}  {each.before:>8,}  {each.after:>8,}"
            f"  {created:>8}  {fit(name, columns).rstrip()}"
        )


def _counts(title: str, changes: Iterable[CountChange]) -> Iterator[str]:
    for number, each in enumerate(changes):
        if not number:
            yield f"\n{title}:"
        more = each.after - each.before
        yield (
            f"{each.change:6}  {more:>+9,}  {each.before:>8,}  {each.after:>8,}"
            f"  {printable(each.name)}"
        )


def diff_as_json(changes: SnapshotDiff) -> dict[str, Any]:
    """Return the changes as data, under stable keys."""
    return {
        "seconds": changes.seconds,
        "same_process": changes.same_process,
        "alive": {"before": changes.alive_before, "after": changes.alive_after},
        "places": [
            {
                "change": each.change,
                "file": each.place.file,
                "line": each.place.line,
                "function": each.place.function,
                "before": each.before,
                "after": each.after,
                "created": each.created,
            }
            for each in changes.places
        ],
        "kept": [_count_as_json("container", each) for each in changes.kept],
        "never_wakes": [_count_as_json("waits_for", each) for each in changes.never_wakes],
    }


def _count_as_json(name: str, change: CountChange) -> dict[str, Any]:
    return {
        "change": change.change,
        name: change.name,
        "before": change.before,
        "after": change.after,
    }
