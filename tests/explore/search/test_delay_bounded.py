"""Bound by bound: every schedule exactly once, and no claim that is not true."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.search.plan import Plan, Record, Settings
from handfast._explore.search.run import run
from handfast._explore.search.strategies.delay_bounded import Systematic
from handfast.explore import latency
from tests.explore.search.brute_force import Schedule, all_schedules, schedule
from tests.explore.search.planted_bugs import only_one_schedule, two_answers_each
from tests.explore.search.recorded_search import Program, records


async def timers() -> None:
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))


async def late() -> None:
    asyncio.get_running_loop().call_later(0.03, lambda: None)
    await asyncio.sleep(0.01)
    await asyncio.sleep(0.03)


async def answers() -> None:
    await asyncio.wait([asyncio.create_task(latency()), asyncio.create_task(asyncio.sleep(0))])


async def turns() -> None:
    await asyncio.gather(*(asyncio.create_task(asyncio.sleep(0)) for _ in range(2)))


async def hand_overs() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ExploredLoop)
    came = asyncio.Event()
    loop.channel("thread", between=True).post(lambda: loop.enqueue(came.set), label="it")
    task = asyncio.create_task(asyncio.sleep(0))
    await came.wait()
    await asyncio.wait([task])


async def left_over() -> None:
    asyncio.create_task(asyncio.sleep(0))


async def clean_up() -> None:
    async def task() -> None:
        try:
            await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0)

    await asyncio.wait([asyncio.create_task(task())])


PROGRAMS: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = (
    timers,
    late,
    answers,
    turns,
    hand_overs,
    left_over,
    clean_up,
)
SETTINGS = {
    "strict": (Settings(stall=0.02), 0),
    "latency": (Settings(model="latency", stall=0.0), 0),
    "cancel": (Settings(cancel="tasks", stall=0.01), 1),
    "cancel in latency": (Settings(cancel="tasks", model="latency", stall=0.0), 1),
    "double": (Settings(cancel="double", stall=0.0), 2),
}


def up_to(bound: int, program: Program, settings: Settings, cancels: int) -> Counter[Schedule]:
    """The schedules that the search has run when it says so: all up to this bound."""
    search = Systematic(cancels)
    seen: Counter[Schedule] = Counter()
    while not search.complete and (search.bound is None or search.bound < bound):
        for plan in search.batch():
            record = run(program, plan, settings)
            assert record.cancelled == len(plan.cancels), "a cancel that meets no task"
            seen[schedule(record)] += 1
            search.learn(record)
    return seen


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_schedule_up_to_the_bound_is_run_exactly_once(program: Program, kind: str) -> None:
    settings, cancels = SETTINGS[kind]
    found = up_to(2, program, settings, cancels)
    assert found.keys() == all_schedules(program, settings, bound=2, cancels=cancels).keys()
    assert set(found.values()) == {1}


def test_fewer_departures_come_first() -> None:
    found = records(Systematic(1), answers, SETTINGS["cancel"][0])
    sizes = [record.plan.departures for record in found]
    assert sizes == sorted(sizes)


def test_a_program_with_one_schedule_is_done_with_it() -> None:
    search = Systematic(0)
    assert len(records(search, only_one_schedule, Settings())) == 1
    assert search.complete
    assert search.bound == 0


def test_without_the_plain_run_nothing_is_claimed() -> None:
    search = Systematic(0)
    assert search.bound is None
    assert search.plain is None
    assert not search.complete


def test_a_search_without_budget_claims_only_what_it_has_run() -> None:
    """74 schedules in all; with a limit of 40 the second level does not fit."""
    everything = records(Systematic(0), two_answers_each, Settings())
    assert len(everything) == 74
    search = Systematic(0, 40)
    found = records(search, two_answers_each, Settings())
    assert len(found) < len(everything)
    assert not search.complete
    run_to = max(b for b in range(10) if _all_up_to(b, everything, found))
    assert search.bound is not None
    assert search.bound <= run_to


def _all_up_to(bound: int, everything: list[Record], found: list[Record]) -> bool:
    wanted = {schedule(r) for r in everything if r.plan.departures <= bound}
    return wanted <= {schedule(r) for r in found}


def test_the_search_knows_how_much_of_a_level_is_left() -> None:
    search = Systematic(0)
    assert search.left == 1
    (plan,) = search.batch()
    search.learn(run(two_answers_each, plan, Settings()))
    assert search.left == len(search.batch()) > 0


def test_the_last_level_is_run_without_looking_further() -> None:
    search = Systematic(0, 10)
    found = records(search, two_answers_each, Settings())
    assert found[0].plan == Plan(observe=True)
    assert not found[-1].plan.observe
    assert len(found) <= 10


def test_a_level_that_grows_beyond_the_limit_is_cut_short() -> None:
    async def many_answers() -> None:
        await asyncio.gather(*(latency() for _ in range(8)))

    search = Systematic(0, 5)
    found = records(search, many_answers, Settings())
    assert len(found) == 5
    assert search.bound == 0
    assert not search.complete
