"""The smallest schedule that fails: the fewest departures, then the least lateness."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from handfast._explore.search.plan import Cancel, Plan, Record, Settings
from handfast._explore.search.run import run
from handfast._explore.search.shrink import shrink
from handfast._explore.search.strategies.delay_bounded import Systematic
from handfast._explore.verdict.verdict import Verdict
from tests.explore.search.planted_bugs import cancelled_clean_up, first_comes_last, two_timers
from tests.explore.search.random_programs import asking
from tests.explore.search.recorded_search import Logging, Program, outcomes_of, records


def attempts(program: Program, settings: Settings) -> Callable[[Plan], Record]:
    return lambda plan: run(program, plan, settings)


def size(record: Record) -> tuple[int, float]:
    return record.settled.departures, round(record.stall, 9)


def fails_with_another_outcome(made: Logging, settings: Settings) -> Program | None:
    """A random program that fails if it has one outcome that it does not have in the plain order."""
    found, _ = outcomes_of(Systematic(0), made, settings, limit=150)
    usual, _ = outcomes_of(Systematic(0), made, settings, limit=1)
    others = sorted(found - usual)
    if not others:
        return None

    async def failing() -> None:
        log: list[str] = []
        await made(log)
        assert tuple(log) != others[-1]

    return failing


def time_outs(*pairs: tuple[float, float]) -> Program:
    """Fails if one of these takes longer than its time-out: (seconds, time-out)."""

    async def one(seconds: float, limit: float) -> None:
        async with asyncio.timeout(limit):
            await asyncio.sleep(seconds)

    async def program() -> None:
        await asyncio.gather(*(one(*pair) for pair in pairs))

    return program


def check_smallest(program: Program, settings: Settings, draw: random.Random) -> int:
    """Shrinks some failing schedules and compares with all of them; how many there were."""
    search = Systematic(0)
    failing = [r for r in records(search, program, settings, limit=1_000) if r.verdict is not None]
    assert search.complete
    some = draw.sample(failing, min(3, len(failing)))
    for record in some:
        assert record.verdict is not None
        same = [r for r in failing if record.verdict.same_bug(r.verdict)]
        best = shrink(record, attempts(program, settings))
        assert size(best) == min(map(size, same))
    return len(some)


@pytest.mark.parametrize(
    ("made", "settings"),
    [(asking, Settings(model="latency", stall=0.0))],
)
def test_the_result_has_the_fewest_departures_of_all(
    made: Callable[[int], Logging], settings: Settings
) -> None:
    draw = random.Random(0)
    programs = [fails_with_another_outcome(made(seed), settings) for seed in range(6)]
    assert sum(check_smallest(it, settings, draw) for it in programs if it is not None) > 5


@pytest.mark.parametrize(
    "pairs",
    [
        ((0.01, 0.03), (0.01, 0.02)),
        ((0.01, 0.04), (0.02, 0.03)),
        ((0.02, 0.05), (0.01, 0.03), (0.01, 0.05)),
    ],
)
def test_the_result_has_the_least_lateness_of_all(pairs: tuple[tuple[float, float], ...]) -> None:
    assert check_smallest(time_outs(*pairs), Settings(stall=0.04), random.Random(0)) == 3


@pytest.mark.parametrize("tail", ["random", "pct", "pos"])
def test_a_random_schedule_is_replayed_by_its_departures_alone(tail: str) -> None:
    attempt = attempts(first_comes_last, Settings())
    failing = (attempt(Plan(tail=tail, seed=seed)) for seed in range(200))  # type: ignore[arg-type]
    record = next(record for record in failing if record.verdict is not None)
    plan = shrink(record, attempt).settled
    assert plan.tail == "plain"
    assert plan.departures == 2
    assert attempt(plan).verdict is not None


def test_lateness_is_no_more_than_the_bug_needs() -> None:
    attempt = attempts(two_timers, Settings(stall=5.0))
    found = (attempt(Plan(tail="random", seed=seed)) for seed in range(200))
    record = next(record for record in found if record.verdict is not None)
    assert shrink(record, attempt).stall == pytest.approx(0.02)


def test_a_cancel_that_is_not_needed_is_left_out_and_one_that_is_stays() -> None:
    settings = Settings(cancel="double")
    attempt = attempts(cancelled_clean_up, settings)
    observed = attempt(Plan(observe=True))
    first = observed.segments[0]
    failing = attempt(Plan(cancels=(Cancel(first.first, first.task),)))
    assert failing.verdict is not None
    best = shrink(failing, attempt)
    assert best.settled.cancels == (Cancel(first.first, first.task),)


def test_another_bug_on_the_way_is_not_taken_for_this_one() -> None:
    def attempt(plan: Plan) -> Record:
        code = "HF441" if len(plan.choices) >= 2 else "HF431"
        taken = [dict(plan.choices).get(at, 0) for at in range(4)]
        return Record(plan, verdict=Verdict(code, "it"), taken=taken)

    failing = attempt(Plan(((0, 1), (1, 3), (3, 1))))
    best = shrink(failing, attempt)
    assert len(best.departed) == 2
    assert sum(value for _, value in best.departed) == 2


def test_it_stops_when_its_tries_are_used_up() -> None:
    tried: list[Plan] = []

    def attempt(plan: Plan) -> Record:
        tried.append(plan)
        return Record(plan, verdict=None)

    failing = Record(Plan(), verdict=Verdict("HF441", "it"), taken=[1] * 50)
    assert shrink(failing, attempt, tries=20) is failing
    assert len(tried) == 19, "one schedule comes up twice"


def test_a_long_run_is_not_searched_for_longer_than_a_moment() -> None:
    tried: list[Plan] = []

    def attempt(plan: Plan) -> Record:
        tried.append(plan)
        return Record(plan, verdict=None, steps=1_000_000)

    failing = Record(Plan(), Verdict("HF441", "it"), taken=[1, 1], steps=1_000_000)
    shrink(failing, attempt)
    assert len(tried) <= 4
