"""Random schedules: fixed by the seed, with cancels from the situations of the plain run."""

from __future__ import annotations

from collections import Counter

from handfast._explore.search.plan import Plan, Point, Record, Segment, Settings, Tail
from handfast._explore.search.strategies.sampling import Sampling
from tests.explore.search.planted_bugs import only_one_schedule
from tests.explore.search.recorded_search import records

POINTS = [Point("arrive", 3, 0), Point("timers", 2, 1), Point("between", 2, 2)]
SEGMENTS = [Segment(1, 2, 5, state=1), Segment(2, 3, 3, state=2)]
TAILS: tuple[Tail, ...] = ("random", "pct", "pos")


def sampling(seed: int, cancels: int = 0) -> Sampling:
    strategy = Sampling(TAILS, seed, cancels)
    (plan,) = strategy.batch()
    assert plan == Plan(observe=True)
    strategy.learn(Record(plan, points=POINTS, segments=SEGMENTS if cancels else []))
    return strategy


def test_the_same_seed_gives_the_same_plans_and_another_seed_others() -> None:
    assert sampling(3, 2).batch() == sampling(3, 2).batch()
    assert sampling(3, 2).batch() != sampling(4, 2).batch()


def test_the_tails_take_turns_each_with_a_seed_of_its_own() -> None:
    strategy = sampling(0)
    plans = strategy.batch() + strategy.batch()
    assert [plan.tail for plan in plans[:4]] == ["random", "pct", "pos", "random"]
    assert len({plan.seed for plan in plans}) == len(plans)


def test_pct_gets_the_number_of_choice_points_of_the_plain_run() -> None:
    assert {plan.length for plan in sampling(0).batch()} == {2}


def test_cancels_are_drawn_from_the_situations_of_the_plain_run() -> None:
    plans = [plan for seed in range(5) for plan in sampling(seed, 1).batch()]
    cancelled = Counter(cancel for plan in plans for cancel in plan.cancels)
    assert {(c.instant, c.task) for c in cancelled} == {(n, 1) for n in range(2, 6)} | {(3, 2)}
    without = sum(not plan.cancels for plan in plans)
    assert 0 < without < len(plans) / 4
    assert all(len(plan.cancels) <= 1 for plan in plans)


def test_a_second_cancel_is_soon_after_the_first_for_the_same_task() -> None:
    pairs = [plan.cancels for plan in sampling(0, 2).batch() if plan.cancels]
    assert pairs
    assert all(len(pair) == 2 for pair in pairs)
    assert all(first.task == second.task for first, second in pairs)
    gaps = Counter(second.instant - first.instant for first, second in pairs)
    assert min(gaps) == 1
    assert gaps[1] > len(pairs) / 8


def test_a_program_with_one_schedule_is_done_with_it() -> None:
    strategy = Sampling(("random",), 0, 0)
    assert strategy.bound is None
    assert len(records(strategy, only_one_schedule, Settings(), limit=10)) == 1
    assert strategy.complete
    assert strategy.bound == 0


def test_a_sample_is_never_complete() -> None:
    strategy = sampling(0)
    for plan in strategy.batch():
        strategy.learn(Record(plan))
    assert not strategy.complete
    assert strategy.bound == 0
