"""A search that continues: what the first one's budget misses, a later one reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from handfast._explore.corpus.continued import ContinuedCampaign
from handfast._explore.corpus.store import Corpus, Entry
from handfast._explore.search.plan import Cancel, Options, Plan
from handfast.explore import explore, latency, victim

Program = Callable[[], Coroutine[Any, Any, None]]


async def last_of_many() -> None:
    """Eight pairs of answers; only the last two must not change places."""
    seen: list[int] = []

    async def one(number: int) -> None:
        await latency()
        seen.append(number)

    for number in range(0, 16, 2):
        await asyncio.gather(one(number), one(number + 1))
    assert seen.index(14) < seen.index(15)


async def two_swaps() -> None:
    """Both pairs have to change places: no schedule with one departure does that."""
    seen: list[int] = []

    async def one(number: int) -> None:
        await latency()
        seen.append(number)
        if seen[0] == 1:
            await asyncio.sleep(0)  # the run with the first swap takes more steps: it is kept

    for number in range(0, 4, 2):
        await asyncio.gather(one(number), one(number + 1))
    assert seen != [1, 0, 3, 2]


def search(program: Program, corpus: Corpus, **options: Any) -> ContinuedCampaign:
    chosen = Options(model="latency", stall=0, seed=corpus.searches, **options)
    campaign = ContinuedCampaign(program, chosen, corpus)
    campaign.run()
    return campaign


def test_the_second_search_begins_where_the_first_one_stopped() -> None:
    needed = explore(last_of_many, model="latency", strategy="dfs", stall=0).schedules
    assert needed > 20
    corpus, schedules, searches = Corpus(), 0, 0
    while True:
        campaign = search(last_of_many, corpus, strategy="dfs", schedules=12)
        schedules, searches = schedules + campaign.schedules, searches + 1
        corpus = campaign.corpus()
        if campaign.result().counterexample is not None:
            break
        assert searches < 10
    assert searches > 1
    # Beside the plain order, a quarter of each budget may go to the schedules that were kept.
    assert schedules <= needed * 3 // 2
    alone = explore(last_of_many, model="latency", strategy="dfs", stall=0, schedules=12)
    assert alone.counterexample is None


def test_a_schedule_that_broke_the_program_is_run_first_the_next_time() -> None:
    corpus = search(last_of_many, Corpus()).corpus()
    assert corpus.entries[0].plan.departures == 1
    assert search(last_of_many, corpus).schedules == 2


def test_the_search_goes_deeper_from_what_was_kept() -> None:
    corpus, found = Corpus(), None
    for _ in range(6):
        campaign = search(two_swaps, corpus, strategy="dfs", schedules=6)
        corpus, found = campaign.corpus(), campaign.result().counterexample
    assert found is not None
    assert found.plan.departures == 2


def test_after_the_first_level_come_new_random_schedules() -> None:
    async def fine() -> None:
        async def one() -> None:
            await latency()
            await latency()

        await asyncio.gather(*(one() for _ in range(4)))

    campaign = search(fine, Corpus(), schedules=40)
    plain = campaign._continued._plain
    assert plain is not None
    branches = len(campaign._continued._branches_of(plain))
    later = search(fine, Corpus(1, Entry(Plan(), branches)), schedules=20)
    assert len(later._continued._ran) == 1  # the plain order; all others were random
    assert later.result().coverage.schedules > 10


def test_a_complete_search_is_still_complete_and_runs_nothing_twice() -> None:
    async def small() -> None:
        await asyncio.gather(*(latency() for _ in range(2)))

    first = search(small, Corpus())
    assert first.result().complete
    assert first.corpus() == Corpus()
    # An earlier search had a smaller budget.
    small_budget = search(small, Corpus(), schedules=3)
    second = search(small, small_budget.corpus())
    assert second.result().complete
    assert second.schedules == second.result().coverage.schedules == first.schedules


async def cancelled() -> None:
    await victim(asyncio.sleep(1))
    await asyncio.create_task(asyncio.sleep(1))


def test_schedules_that_no_longer_fit_do_no_harm() -> None:
    """Kept for another program: choices that do not exist, cancels of tasks that may not be."""
    entries = (
        Entry(Plan(((3, 1), (400, 2)), (Cancel(2, 1),)), 5),
        Entry(Plan((), (Cancel(1, 0),))),
        Entry(Plan((), (Cancel(1, 2),))),
        Entry(Plan((), (Cancel(0, 1), Cancel(1, 1)))),
    )
    corpus = Corpus(3, Entry(Plan(), 1_000), entries)
    result = search(cancelled, corpus, cancel=True).result()
    assert (result.counterexample, result.complete) == (None, True)
    without = search(cancelled, corpus).result()
    assert (without.counterexample, without.complete) == (None, True)


def test_what_shows_nothing_new_any_more_is_dropped() -> None:
    async def fine() -> None:
        await asyncio.gather(*(latency() for _ in range(2)))

    kept = search(fine, Corpus()).corpus()
    stale = Entry(Plan(((900, 1),)))
    again = search(fine, replace(kept, entries=(*kept.entries, stale))).corpus()
    assert stale.plan not in [entry.plan for entry in again.entries]
