"""One departure further, the most telling ones first."""

from __future__ import annotations

from handfast._explore.search.plan import Cancel, Plan, Point, Record, Segment
from handfast._explore.search.strategies.branching import Branching, first_new

NEW_STATE, CHOICE, EDGE, REST = range(4)


def record(
    plan: Plan | None = None, points: tuple[Point, ...] = (), segments: tuple[Segment, ...] = ()
) -> Record:
    return Record(plan or Plan(), points=list(points), segments=list(segments), instants=100)


def cancels(seen: Record, branching: Branching, until: int | None = None) -> dict[int, int]:
    return {
        plan.cancels[-1].instant: rank
        for rank, plan in branching.branches(seen, 0, until)
        if len(plan.cancels) > len(seen.plan.cancels)
    }


def test_a_situation_without_a_cancel_so_far_has_the_first_rank() -> None:
    seen = record(segments=(Segment(1, 4, 8, state=77), Segment(1, 9, 10, state=77)))
    ranks = cancels(seen, Branching(1))
    assert ranks == {4: NEW_STATE, 5: REST, 6: REST, 7: REST, 8: EDGE, 9: EDGE, 10: EDGE}


def test_a_run_that_ended_before_its_last_departure_has_no_branches() -> None:
    """A program that does not repeat may meet fewer choices than the plan was made for."""
    plan = Plan(choices=((3, 1),))
    seen = record(plan, points=(Point("arrive", 3, 0),), segments=(Segment(1, 4, 8, state=77),))
    assert not list(Branching(1).branches(seen, 0))


def test_a_situation_is_new_once() -> None:
    branching = Branching(1)
    seen = record(segments=(Segment(1, 4, 5, state=77),))
    assert cancels(seen, branching)[4] == NEW_STATE
    assert cancels(seen, branching)[4] == EDGE
    assert cancels(record(segments=(Segment(2, 4, 5, state=77),)), branching)[4] == NEW_STATE


def test_choices_come_after_new_situations_and_before_more_of_the_same() -> None:
    seen = record(points=(Point("arrive", 3, 0),))
    found = [(rank, plan.choices) for rank, plan in Branching(0).branches(seen, 10)]
    assert found == [(10 + CHOICE, ((0, 1),)), (10 + CHOICE, ((0, 2),))]
    assert NEW_STATE < CHOICE < EDGE < REST


def test_no_more_cancels_than_allowed() -> None:
    segments = (Segment(1, 4, 8, state=1),)
    assert not cancels(record(segments=segments), Branching(0))
    assert not cancels(record(Plan(cancels=(Cancel(4, 1),)), segments=segments), Branching(1))


def test_a_second_cancel_is_for_the_same_task_at_a_later_instant() -> None:
    seen = record(
        Plan(cancels=(Cancel(4, 1),)),
        segments=(Segment(1, 0, 4, 1), Segment(1, 5, 6, 2), Segment(2, 0, 9, 3)),
    )
    assert cancels(seen, Branching(2)).keys() == {5, 6}


def test_departures_are_added_in_the_order_of_time() -> None:
    points = (
        Point("arrive", 2, 5),  # at a poll: before the cancels of this instant
        Point("between", 2, 5),  # between two handles: after them
        Point("arrive", 2, 6),
    )
    segments = (Segment(1, 0, 9, state=1),)
    assert first_new(record(Plan(cancels=(Cancel(5, 1),)), points)) == 1
    assert first_new(record(Plan(((0, 1),), (Cancel(7, 1),)), points)) == 3
    after_the_poll = cancels(record(Plan(((0, 1),)), points, segments), Branching(1))
    assert min(after_the_poll) == 5
    after_the_hand_over = cancels(record(Plan(((1, 1),)), points, segments), Branching(1))
    assert min(after_the_hand_over) == 6


def test_nothing_at_or_after_the_point_where_it_stops() -> None:
    points = (Point("arrive", 2, 3), Point("arrive", 2, 5), Point("between", 2, 7))
    seen = record(points=points, segments=(Segment(1, 0, 9, state=1),))
    plans = [plan for _, plan in Branching(1).branches(seen, 0, until=1)]
    assert [plan.choices for plan in plans if plan.choices] == [((0, 1),)]
    assert max(cancels(seen, Branching(1), until=1)) == 4
    assert max(cancels(seen, Branching(1), until=2)) == 7


def test_no_task_is_cancelled_after_the_end() -> None:
    seen = Record(Plan(), segments=[Segment(1, 0, 6, state=1)], instants=6)
    assert max(cancels(seen, Branching(1))) == 5
