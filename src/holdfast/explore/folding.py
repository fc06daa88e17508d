"""Which rows are worth a look, which tasks get a lane, and what a lane does between its rows.

Long stretches in which nothing departs from the plain order are folded; the terminal's timeline
and the page fold alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.explore.rows import Row
from holdfast.explore.story import LOOP, OUTSIDE, Story

__all__ = ["Fold", "State", "columns", "fold", "follow"]

# What a task is doing in between: not born, asleep, woken and in the queue, at its end.
State = Literal["", "waits", "ready"]

# As many rows as this are shown whole.
_SHORT = 40
# The rows kept around a departure, at the beginning and before the end.
_BESIDE = 3
_FIRST = 4
_LAST = 8
# Departures whose surroundings are kept, if there are very many: the last ones matter most.
_FIRST_DEPARTURES = 4
_LAST_DEPARTURES = 16


@dataclass(slots=True)
class Fold:
    """A stretch of rows that are not shown."""

    rows: list[Row]

    @property
    def departures(self) -> int:
        return sum(row.departure for row in self.rows)

    def __str__(self) -> str:
        steps = sum(row.step is not None for row in self.rows)
        said = f"{steps:,} steps"
        count = self.departures
        return f"{said} with {count:,} departures" if count else f"{said} in the plain order"


def fold(rows: Sequence[Row]) -> list[Row | Fold]:
    """Leave out the long stretches in which nothing departs from the plain order."""
    if len(rows) <= _SHORT:
        return list(rows)
    keep = _telling(rows)
    shown: list[Row | Fold] = []
    hidden: list[Row] = []
    for at, row in enumerate(rows):
        if keep[at]:
            _put_away(shown, hidden)
            hidden = []
            shown.append(row)
        else:
            hidden.append(row)
    _put_away(shown, hidden)
    return shown


def _put_away(shown: list[Row | Fold], hidden: list[Row]) -> None:
    # A fold takes a line itself.
    if len(hidden) > 2:
        shown.append(Fold(hidden))
    else:
        shown.extend(hidden)


def _telling(rows: Sequence[Row]) -> bytearray:
    size = len(rows)
    keep = bytearray(size)
    marked = [at for at, row in enumerate(rows) if row.departure]
    if len(marked) > _FIRST_DEPARTURES + _LAST_DEPARTURES:
        marked = marked[:_FIRST_DEPARTURES] + marked[-_LAST_DEPARTURES:]
    failing = [at for at, row in enumerate(rows) if row.failing][-_LAST_DEPARTURES:]
    for at in (*marked, *failing):
        for near in range(max(0, at - _BESIDE), min(size, at + _BESIDE + 1)):
            keep[near] = 1
    for at in (*range(_FIRST), *range(size - _LAST, size)):
        keep[at] = 1
    return keep


def columns(story: Story, rows: Iterable[Row | Fold], most: int) -> list[int]:
    """The lanes that get a column: those that the rows speak of, the most telling first if there
    are more than `most`; in the order of birth, then the loop, then the outside."""
    weight: Counter[int] = Counter({0: 1_000_000} if story.lanes else {})
    for row in rows:
        if isinstance(row, Row) and row.mark != "choice":  # that is drawn across all lanes
            weight[row.lane] += 1000 if row.failing or row.mark == "cancel" else 3
            weight.update((*row.wakes, *row.starts, *row.cancels))
    for lane in (LOOP, OUTSIDE):
        if weight[lane]:
            weight[lane] += 1_000_000
    chosen = {lane for lane, _ in weight.most_common(most)}
    tasks = sorted(lane for lane in chosen if lane >= 0)
    return [*tasks, *(lane for lane in (LOOP, OUTSIDE) if lane in chosen)]


def follow(row: Row, state: dict[int, State]) -> None:
    """Bring up to date what each task does: `state` holds it before this row, then after it."""
    for lane in (*row.wakes, *row.starts, *row.cancels):
        if lane >= 0:
            state[lane] = "ready"
    if row.mark in ("returns", "fails", "cancelled"):
        state[row.lane] = ""
    elif row.mark == "step":
        # A task that queues itself, as in sleep(0), is ready again at once.
        state[row.lane] = "ready" if row.lane in row.wakes else "waits"
