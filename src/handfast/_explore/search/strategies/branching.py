"""The schedules that are one departure beyond a given one, the most promising first.

Departures are added in the order of time, so each schedule is reached in one way only. The rank
says how soon a schedule should be tried: a situation in which no task has been cancelled yet
comes first, one more instant of the same situation comes last.
"""

from __future__ import annotations

from collections.abc import Iterator

from handfast._explore.search.plan import Cancel, Plan, Point, Record, Segment

# (rank, plan): lower ranks are run earlier.
Branch = tuple[int, Plan]
# (instant, 0 before the cancels of this instant, 1 with them, 2 after them)
Moment = tuple[int, int]

_NEW_STATE, _CHOICE, _EDGE, _REST = range(4)
_START: Moment = (-1, 0)
# These choices are made between two handles, after the cancels at that instant.
_AFTER_CANCELS = frozenset({"between"})


class Branching:
    """Makes the branches of observed records, and remembers which situations it has met."""

    def __init__(self, cancels: int) -> None:
        self._cancels = cancels
        self._met: set[tuple[int, ...]] = set()

    def branches(self, record: Record, rank: int, until: int | None = None) -> Iterator[Branch]:
        """Plans with one more departure each.

        `rank` is that of the schedule itself. `until` is a choice point: nothing at or after it.
        """
        plan = record.plan
        if plan.choices and plan.choices[-1][0] >= len(record.points):
            return  # it has ended before its last departure, so nothing can come after that one
        stop = len(record.points) if until is None else until
        for ordinal in range(first_new(record), stop):
            for value in range(1, record.points[ordinal].options):
                choices = (*plan.choices, (ordinal, value))
                yield rank + _CHOICE, Plan(choices, plan.cancels)
        if len(plan.cancels) < self._cancels:
            end = None if until is None else _moment(record.points[until])
            for how_soon, cancel in self._more_cancels(record):
                if end is None or (cancel.instant, 1) < end:
                    yield rank + how_soon, Plan(plan.choices, (*plan.cancels, cancel))

    def _more_cancels(self, record: Record) -> Iterator[tuple[int, Cancel]]:
        plan = record.plan
        instant, order = _last_choice(record)
        since = max(0, instant if order < 1 else instant + 1)
        last = plan.cancels[-1] if plan.cancels else None
        for segment in record.segments:
            if last is not None:
                # A second cancel is for the task that had the first.
                if segment.task == last.task:
                    yield from self._instants(segment, max(since, last.instant + 1), record)
            else:
                yield from self._instants(segment, since, record)

    def _instants(
        self, segment: Segment, since: int, record: Record
    ) -> Iterator[tuple[int, Cancel]]:
        plan = record.plan
        situation = (segment.task, segment.state, len(plan.cancels), len(plan.choices))
        # After the last instant of the run there is none at which a cancel could come.
        end = min(segment.last, record.instants - 1)
        for instant in range(max(segment.first, since), end + 1):
            how_soon = _REST
            if instant == segment.first and situation not in self._met:
                self._met.add(situation)
                how_soon = _NEW_STATE
            elif instant in (segment.first, segment.last):
                how_soon = _EDGE
            yield how_soon, Cancel(instant, segment.task)


def first_new(record: Record) -> int:
    """The first choice point that lies after every departure of the run."""
    plan, points = record.plan, record.points
    ordinal = plan.choices[-1][0] + 1 if plan.choices else 0
    if plan.cancels:
        last = (plan.cancels[-1].instant, 1)
        while ordinal < len(points) and _moment(points[ordinal]) < last:
            ordinal += 1
    return ordinal


def _last_choice(record: Record) -> Moment:
    choices = record.plan.choices
    return _moment(record.points[choices[-1][0]]) if choices else _START


def _moment(point: Point) -> Moment:
    return point.instant, 2 if point.kind in _AFTER_CANCELS else 0
