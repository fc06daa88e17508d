"""The default strategy: systematic search first, then in turns with random samples."""

from __future__ import annotations

import asyncio

from handfast._explore.search.plan import Settings
from handfast._explore.search.run import run
from handfast._explore.search.strategies import STRATEGIES, make
from handfast._explore.search.strategies.portfolio import Portfolio
from handfast._explore.search.strategies.strategy import BATCH
from handfast.explore import latency
from tests.explore.search.planted_bugs import only_one_schedule, two_answers_each
from tests.explore.search.recorded_search import Program, records

ANYTIME = Settings(model="latency", cancel="double")


def turns(strategy: Portfolio, program: Program, settings: Settings, count: int) -> list[set[str]]:
    """The tails of each of the first batches."""
    seen = []
    for _ in range(count):
        plans = strategy.batch()
        seen.append({str(plan.tail) for plan in plans})
        for plan in plans:
            strategy.learn(run(program, plan, settings))
    return seen


def test_the_plain_order_comes_first_and_then_one_departure() -> None:
    strategy = Portfolio(0, None, 2)
    found = records(strategy, two_answers_each, ANYTIME, limit=30)
    assert found[0].plan.departures == 0
    assert {record.plan.departures for record in found[1:]} == {1}


def test_every_eighth_turn_is_systematic_once_the_first_level_is_done() -> None:
    strategy = Portfolio(0, None, 2)
    while strategy.bound in (None, 0):
        turns(strategy, two_answers_each, ANYTIME, 1)
    later = turns(strategy, two_answers_each, ANYTIME, 8)
    assert [tails == {"plain"} for tails in later] == [False] * 7 + [True]
    assert set.union(*later) == {"plain", "pct", "pos", "surw", "mutate"}


def test_a_level_as_small_as_a_batch_is_finished_first() -> None:
    strategy = Portfolio(0, None, 0)
    assert turns(strategy, two_answers_each, Settings(), 3) == [{"plain"}] * 3
    assert strategy.bound == 2


def test_a_first_level_over_the_limit_leaves_some_schedules_for_samples() -> None:
    async def many_answers() -> None:
        await asyncio.gather(*(latency() for _ in range(20)))

    strategy = Portfolio(0, 400, 0)
    found = records(strategy, many_answers, Settings(), limit=400)
    assert strategy.bound == 0
    samples = [at for at, record in enumerate(found) if record.plan.tail != "plain"]
    assert min(samples) >= 300
    assert samples[0] + len(samples) == len(found)


def test_when_every_schedule_is_run_it_is_complete_and_stops() -> None:
    strategy = Portfolio(0, None, 0)
    found = records(strategy, two_answers_each, Settings())
    searched = {record.departed for record in found if record.plan.tail == "plain"}
    assert len(searched) == 74
    assert strategy.complete
    assert strategy.batch() == []


def test_a_program_with_one_schedule_is_run_once() -> None:
    strategy = Portfolio(0, 1_000, 0)
    assert len(records(strategy, only_one_schedule, Settings())) == 1
    assert strategy.complete


def test_the_plans_depend_on_the_seed_and_on_nothing_else() -> None:
    for name in STRATEGIES:
        plans = []
        for seed in (1, 1, 2):
            strategy = make(name, seed=seed, schedules=100, cancels=2)
            found = records(strategy, two_answers_each, ANYTIME, limit=100)
            plans.append([record.plan for record in found])
        assert plans[0] == plans[1], name
        assert (plans[0] == plans[2]) == (name in ("dfs", "states")), name


def test_no_batch_is_larger_than_agreed() -> None:
    for name in STRATEGIES:
        strategy = make(name, seed=0, schedules=300, cancels=1)
        for _ in range(3):
            plans = strategy.batch()
            assert 0 < len(plans) <= BATCH
            for plan in plans:
                strategy.learn(run(two_answers_each, plan, ANYTIME))
