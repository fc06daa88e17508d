"""Partial-order reduction: fewer schedules than the full search, and not one outcome lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.search.strategies.delay_bounded import Systematic
from handfast._explore.search.strategies.state_reduction import Reduction
from handfast.explore import explore, latency
from tests.explore.search.hidden_state import PLACES, Place
from tests.explore.search.planted_bugs import first_comes_last, two_answers_each
from tests.explore.search.random_programs import asking, mixed, timed
from tests.explore.search.recorded_search import Logging, outcomes_of, records

STRICT = Settings(stall=0.02)
ANYTIME = Settings(model="latency", stall=0.0)


def compare(program: Logging, settings: Settings, cancels: int = 0) -> tuple[int, int]:
    """How many schedules the full search takes, and how many the reduced one; 0 if the full search
    would take too long. Both must lead to the same outcomes."""
    full = Systematic(cancels)
    wanted, everything = outcomes_of(full, program, settings, limit=250)
    if not full.complete:
        return 0, 0
    reduced = Reduction(cancels)
    found, few = outcomes_of(reduced, program, settings)
    assert reduced.complete
    assert found == wanted
    return len(everything), len(few)


# --- what two orders can differ in ---------------------------------------------------------------


async def another_order(log: list[str]) -> None:
    """Two more answers, in either order. If two states were wrongly taken for one, only one of them
    would meet both orders, and a combination would be missing."""

    async def note(name: str) -> None:
        await latency()
        log.append(name)

    await asyncio.gather(note("c"), note("d"))


@pytest.mark.parametrize("place", PLACES)
def test_an_order_that_is_kept_anywhere_tells_two_schedules_apart(
    place: Callable[[], Place],
) -> None:
    async def program(log: list[str]) -> None:
        mark, read = place()

        async def task(name: str) -> None:
            await latency()
            mark(name)

        await asyncio.gather(task("a"), task("b"))
        await another_order(log)
        said = read()
        await asyncio.sleep(0)
        log.append(str(said))

    found, _ = outcomes_of(Reduction(0), program, ANYTIME)
    assert len(found) == 4  # a or b first, c or d first


async def _in_a_local(log: list[str]) -> None:
    async def ask(name: str) -> str:
        return await latency(name)

    done, _ = await asyncio.wait(
        [asyncio.create_task(ask(name)) for name in "ab"], return_when="FIRST_COMPLETED"
    )
    first = sorted(task.result() for task in done)[0]
    await another_order(log)
    log.append(first)


async def _on_the_stack(log: list[str]) -> None:
    box: list[str] = []

    async def first() -> str:
        await latency()
        return box[0]

    async def ask(name: str) -> None:
        await latency()
        box.append(name)

    tasks = [asyncio.create_task(ask(name)) for name in "ab"]
    await asyncio.wait(tasks)
    log.append("".join([await first(), await _cleared(box), await first()]))


async def _cleared(box: list[str]) -> str:
    box[:] = ["-"]
    await another_order(box)
    return "".join(box)


async def _in_who_waits_for_the_lock(log: list[str]) -> None:
    lock = asyncio.Lock()

    async def enter(name: str) -> None:
        await latency()
        async with lock:
            await latency()
            log.append(name)

    await asyncio.gather(enter("a"), enter("b"))
    await another_order(log)


async def _in_an_async_generator(log: list[str]) -> None:
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def numbered() -> Any:
        for number in range(2):
            name = await queue.get()
            yield f"{number}{name}"

    async def put(name: str) -> None:
        await latency()
        queue.put_nowait(name)

    tasks = [asyncio.create_task(put(name)) for name in "ab"]
    await asyncio.wait(tasks)
    items = numbered()
    first = await anext(items)
    await another_order(log)
    log.append(first + await anext(items))
    await items.aclose()


async def _in_a_timer(log: list[str]) -> None:
    async def note(name: str) -> None:
        await latency()
        await asyncio.sleep(0.01)
        log.append(name)

    await asyncio.gather(note("a"), note("b"))
    await another_order(log)


async def _in_an_error_that_nobody_sees(log: list[str]) -> None:
    failed: list[str] = []

    async def fail(name: str) -> None:
        await latency()
        failed.append(name)
        if len(failed) == 2:
            raise ValueError if name == "a" else KeyError

    tasks = [asyncio.create_task(fail(name)) for name in "ab"]
    await asyncio.wait(tasks)
    failed.clear()
    await another_order(log)


async def _in_the_order_of_turns(log: list[str]) -> None:
    """The order of arrival stays in the queue until both tasks write, three turns later."""

    async def note(name: str) -> None:
        await latency()
        for _ in range(3):
            await asyncio.sleep(0)
        log.append(name)

    await asyncio.gather(note("a"), note("b"))
    await another_order(log)


ORDERS: tuple[Logging, ...] = (
    _in_a_local,
    _on_the_stack,
    _in_who_waits_for_the_lock,
    _in_an_async_generator,
    _in_a_timer,
    _in_an_error_that_nobody_sees,
    _in_the_order_of_turns,
)


@pytest.mark.parametrize("program", ORDERS)
def test_an_order_that_is_kept_in_a_task_is_not_lost(program: Logging) -> None:
    wanted, _ = outcomes_of(Systematic(0), program, ANYTIME)
    found, _ = outcomes_of(Reduction(0), program, ANYTIME)
    assert len(wanted) > 2
    assert found == wanted


# --- random programs -------------------------------------------------------------------------------


CASES: dict[str, tuple[Callable[[int], Logging], Settings, int, range]] = {
    "strict": (timed, STRICT, 0, range(12)),
    "asking, strict": (asking, Settings(stall=0.01), 0, range(8)),
    "asking, latency": (asking, ANYTIME, 0, range(8)),
    "cancel": (mixed, Settings(cancel="tasks", stall=0.0), 1, range(8)),
    "cancel, asking": (asking, Settings(cancel="tasks", stall=0.0), 1, range(4)),
    "cancel, latency": (asking, Settings(cancel="tasks", model="latency", stall=0.0), 1, range(3)),
    "double": (mixed, Settings(cancel="double", stall=0.0), 2, range(6)),
}


@pytest.mark.parametrize("case", CASES)
def test_no_outcome_of_a_random_program_is_lost(case: str) -> None:
    made, settings, cancels, seeds = CASES[case]
    sizes = [compare(made(seed), settings, cancels) for seed in seeds]
    full, reduced = (sum(column) for column in zip(*sizes, strict=True))
    assert 0 < reduced <= full
    if made is asking and not cancels:
        assert reduced < full * 0.9


# --- how much it saves, and what it says -----------------------------------------------------------


def independent(tasks: int, answers: int) -> Callable[[], Coroutine[Any, Any, None]]:
    async def program() -> None:
        async def ask() -> None:
            for _ in range(answers):
                await latency()

        await asyncio.gather(*(ask() for _ in range(tasks)))

    return program


def test_independent_tasks_take_a_third_of_the_schedules() -> None:
    full = records(Systematic(0), independent(2, 2), Settings())
    reduced = records(Reduction(0), independent(2, 2), Settings())
    assert len(reduced) <= len(full) / 2.9


def test_the_longer_they_run_the_more_it_saves() -> None:
    full = records(Systematic(0), independent(2, 3), Settings())
    reduced = records(Reduction(0), independent(2, 3), Settings())
    assert len(reduced) <= len(full) / 10


def test_a_bug_is_found_and_reported_as_with_any_other_strategy() -> None:
    found = explore(first_comes_last, strategy="states").counterexample
    assert found is not None
    assert found.code == "HF441"


def test_a_finished_search_is_complete() -> None:
    result = explore(two_answers_each, strategy="states", schedules=10_000)
    assert result.counterexample is None
    assert result.complete
    assert result.exhausted
    assert result.schedules < 74


def test_a_search_that_was_cut_short_claims_no_bound() -> None:
    result = explore(two_answers_each, strategy="states", schedules=10)
    assert not result.complete
    assert not result.exhausted


def test_a_search_over_its_limit_of_plans_is_not_complete() -> None:
    search = Reduction(0, 3)
    records(search, two_answers_each, Settings())
    assert not search.complete


def test_what_cannot_be_looked_into_is_explored_in_full() -> None:
    async def program() -> None:
        hidden = memoryview(b"abc")

        async def ask() -> None:
            await latency()
            assert hidden

        await asyncio.gather(ask(), ask())

    record = run(program, Plan(observe=True, states=True), Settings())
    assert record.states
    assert set(record.states) == {None}
    full = records(Systematic(0), program, Settings())
    assert len(records(Reduction(0), program, Settings())) == len(full)


def test_the_assertions_of_a_test_do_not_hide_its_state() -> None:
    async def program() -> None:
        seen = await asyncio.gather(latency(1), latency(1))
        assert list(seen) == [1, 1], "as pytest rewrites it"

    states = run(program, Plan(observe=True, states=True), Settings()).states
    assert None not in states


def test_a_run_without_the_option_states_has_none() -> None:
    assert run(two_answers_each, Plan(observe=True), Settings()).states == []
