"""Feedback: what did something new is kept, and changed copies of it are run."""

from __future__ import annotations

import asyncio

from handfast._explore.search.plan import Cancel, Plan, Point, Record, Segment, Settings
from handfast._explore.search.run import run
from handfast._explore.search.strategies import make
from handfast._explore.search.strategies.trail_feedback import Feedback
from handfast.explore import latency
from tests.explore.search.planted_bugs import between_two_answers, only_one_schedule
from tests.explore.search.recorded_search import records

ANYTIME = Settings(model="latency", stall=0.0)


def begun(cancels: int = 0) -> Feedback:
    """After the plain run."""
    strategy = Feedback(0, None, cancels)
    (plan,) = strategy.batch()
    segments = [Segment(1, 2, 5, state=1)] if cancels else []
    strategy.learn(Record(plan, points=[Point("arrive", 3, 0)], segments=segments))
    return strategy


def test_the_trail_is_that_of_the_schedule() -> None:
    plain = Plan(trail=True)
    other = Plan(((0, 1),), trail=True)
    trails = [run(between_two_answers, plan, ANYTIME).trail for plan in (plain, plain, other)]
    assert trails[0] == trails[1]
    assert trails[0] != trails[2]
    assert run(between_two_answers, Plan(), ANYTIME).trail == frozenset()


def test_without_anything_new_all_schedules_are_samples() -> None:
    strategy = begun()
    for plan in strategy.batch():
        assert plan.tail in ("pct", "pos", "surw")
        assert plan.trail
        strategy.learn(Record(plan))
    assert {plan.tail for plan in strategy.batch()} == {"pct", "pos", "surw"}


def test_a_schedule_that_did_something_new_is_copied_and_an_equal_one_is_not() -> None:
    strategy = begun()
    first, second, *_ = strategy.batch()
    strategy.learn(Record(first, taken=[0, 2, 0, 1], trail=frozenset({1, 2})))
    strategy.learn(Record(second, taken=[1], trail=frozenset({2})))
    copies = [plan for plan in strategy.batch() if plan.tail == "mutate"]
    assert 20 < len(copies) < 60
    assert {(plan.choices, plan.length) for plan in copies} == {(((1, 2), (3, 1)), 4)}
    assert len({plan.seed for plan in copies}) == len(copies)


def test_a_copy_keeps_its_cancels_or_draws_others() -> None:
    strategy = begun(cancels=1)
    plan, *_ = strategy.batch()
    kept = Record(Plan(cancels=(Cancel(4, 1),), seed=plan.seed), trail=frozenset({1}), cancelled=1)
    strategy.learn(kept)
    cancels = [plan.cancels for plan in strategy.batch() if plan.tail == "mutate"]
    same = sum(each == (Cancel(4, 1),) for each in cancels)
    assert len(cancels) / 2 < same < len(cancels)


async def two_stages() -> None:
    """Fails if three answers overtake another one, twice; each time another line is reached."""
    for stage in range(2):
        seen: list[str] = []

        async def ask(name: str, count: int, seen: list[str] = seen) -> None:
            for _ in range(count):
                await latency(name=name)
                seen.append(name)

        await asyncio.gather(ask("a", 3), ask("b", 1), ask("c", 1))
        if seen.index("b") < 3:
            return
        if stage:
            raise AssertionError("planted")
        await asyncio.sleep(0)


def test_a_bug_behind_two_stages_needs_fewer_schedules_than_by_samples() -> None:
    def needed(name: str, seed: int) -> int:
        strategy = make(name, seed=seed, schedules=200, cancels=0)
        verdicts = [record.verdict for record in records(strategy, two_stages, ANYTIME, limit=200)]
        return next((n for n, verdict in enumerate(verdicts) if verdict), 200)

    feedback, samples = (
        sum(needed(name, seed) for seed in range(3)) for name in ("feedback", "random")
    )
    assert feedback < samples


def test_a_program_with_one_schedule_is_done_with_it() -> None:
    strategy = Feedback(0, None, 0)
    assert len(records(strategy, only_one_schedule, Settings(), limit=10)) == 1
    assert strategy.complete
    assert strategy.bound == 0
