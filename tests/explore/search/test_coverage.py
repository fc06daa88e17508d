"""The size of "none found": what is counted, and what is not counted twice."""

from __future__ import annotations

from handfast._explore.result import Coverage
from handfast._explore.search.plan import Cancel, Plan, Point, Record, Segment
from handfast.explore import explore
from tests.explore.search.planted_bugs import two_answers_each, two_timers


def ran(taken: list[int], *cancels: Cancel, met: int | None = None) -> Record:
    met = len(cancels) if met is None else met
    return Record(Plan(cancels=cancels), taken=taken, cancelled=met)


def counted(*records: Record) -> Coverage:
    coverage = Coverage()
    for record in records:
        coverage.add(record)
    return coverage


def test_the_same_schedule_counts_once() -> None:
    assert counted(ran([0, 1]), ran([0, 1, 0]), ran([1, 0])).schedules == 2


def test_a_cancel_that_meets_no_task_is_not_another_schedule() -> None:
    assert counted(ran([]), ran([], Cancel(9, 1), met=0)).schedules == 1
    assert counted(ran([]), ran([], Cancel(9, 1))).schedules == 2


def test_pairs_of_departures_that_follow_each_other_are_counted() -> None:
    """(start, a), (a, b) and (start, b)."""
    assert counted(ran([1, 1]), ran([0, 1])).pairs == 3
    assert counted(ran([])).pairs == 0


def test_points_cancelled_are_counted_out_of_those_of_the_plain_run() -> None:
    plain = Record(
        Plan(observe=True),
        points=[Point("arrive", 2, 0)],
        segments=[Segment(1, 2, 4, 0), Segment(2, 3, 3, 0)],
    )
    coverage = counted(
        plain, ran([0], Cancel(2, 1)), ran([0], Cancel(2, 1)), ran([1], Cancel(3, 1))
    )
    assert coverage.points_seen == 4
    assert coverage.choice_points == 1
    assert coverage.points_cancelled == 1


def test_a_full_search_has_cancelled_at_every_point_it_has_seen() -> None:
    coverage = explore(two_timers, cancel="main", stall=0.0).coverage
    assert coverage.points_cancelled == coverage.points_seen > 0
    assert f"cancelled at {coverage.points_seen} of {coverage.points_seen} points" in str(coverage)


def test_a_full_search_counts_every_schedule() -> None:
    result = explore(two_answers_each, strategy="dfs")
    assert result.complete
    assert result.coverage.schedules == result.schedules
    assert "cancelled" not in str(result.coverage)
