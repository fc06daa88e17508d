"""The rows of a snapshot: a row for each finding and each place, the findings first.

HF102  a place whose tasks grow in number, in a way that load does not explain
HF131  finished tasks that a container keeps
HF141  tasks that wait for something that nothing alive can complete
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handfast._watch.snapshot import CreationPlace, Snapshot
from handfast._watch.views.cells import place_names, printable, short_line

GROWS = "HF102"
KEPT = "HF131"
NEVER = "HF141"
MEANING = {
    GROWS: "More and more tasks of this place stay alive, in a way that load does not explain.",
    KEPT: "A container keeps tasks that have finished.",
    NEVER: "Nothing alive can complete what these tasks await; only a cancel ends them.",
}
# Created before the watch began, or without `create_task`.
UNKNOWN = "(not known)"


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A row. A number is None where it says nothing."""

    code: str
    """The code of the finding; empty if there is none."""
    created_at: str
    alive: int
    waiting: str
    per_thousand: float | None = None
    created: int | None = None
    oldest: float | None = None
    place: int | None = None
    file: str = ""
    """The whole name of the file, with the line."""

    def __contains__(self, text: str) -> bool:
        """Whether a filter matches: a part of what is shown, in any case."""
        shown = f"{self.code} {self.created_at} {self.waiting} {self.file}"
        return text.casefold() in shown.casefold()


def place_rows(snapshot: Snapshot) -> list[PlaceRow]:
    """Return the rows of growing places, kept tasks, dead tasks, and then those of other places."""
    names = place_names(snapshot.places)
    by_id = {each.id: each for each in snapshot.places}
    growing = [each for each in snapshot.places if each.growth is not None]
    growing.sort(key=lambda each: -each.alive)
    others = [each for each in snapshot.places if each.growth is None and each.alive]
    others.sort(key=lambda each: (-each.alive, -each.created))
    return [
        *(_of_place(each, names) for each in growing),
        *_kept(snapshot, names, by_id),
        *_never(snapshot, names, by_id),
        *(_of_place(each, names) for each in others),
        *_without_place(snapshot),
    ]


def finding_rows(snapshot: Snapshot, code: str = "") -> list[PlaceRow]:
    """Return the rows that are findings; with `code`, only those."""
    return [each for each in place_rows(snapshot) if each.code and code in ("", each.code)]


def _of_place(place: CreationPlace, names: dict[int, str]) -> PlaceRow:
    growth = place.growth
    return PlaceRow(
        "" if growth is None else GROWS,
        names[place.id],
        place.alive,
        short_line(place.waiting_at),
        None if growth is None else growth.per_thousand,
        place.created,
        place.oldest,
        place.id,
        _whole(place),
    )


def _kept(
    snapshot: Snapshot, names: dict[int, str], by_id: dict[int, CreationPlace]
) -> Iterator[PlaceRow]:
    for each in sorted(snapshot.kept, key=lambda kept: -kept.count):
        yield PlaceRow(
            KEPT,
            _named(each.place, names),
            each.count,
            f"finished, kept in {printable(each.container)}",
            place=each.place,
            file=_whole(by_id.get(each.place or 0)),
        )


def _never(
    snapshot: Snapshot, names: dict[int, str], by_id: dict[int, CreationPlace]
) -> Iterator[PlaceRow]:
    for each in sorted(snapshot.never_wakes, key=lambda never: -never.count):
        waits_for = printable(each.waits_for) or "something"
        where = f" ← {short_line(each.waiting_at)}" if each.waiting_at else ""
        yield PlaceRow(
            NEVER,
            _named(each.place, names),
            each.count,
            f"{waits_for}{where}: nothing alive can complete it",
            oldest=each.oldest,
            place=each.place,
            file=_whole(by_id.get(each.place or 0)),
        )


def _without_place(snapshot: Snapshot) -> Iterator[PlaceRow]:
    left = snapshot.alive - sum(each.alive for each in snapshot.places)
    if left > 0:
        yield PlaceRow("", UNKNOWN, left, "see the tree")


def _named(place: int | None, names: dict[int, str]) -> str:
    return names.get(place, UNKNOWN) if place is not None else UNKNOWN


def _whole(place: CreationPlace | None) -> str:
    return "" if place is None else printable(str(place))
