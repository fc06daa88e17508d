"""The agent's own looks: growth and tasks that can never wake, in snapshots."""

from __future__ import annotations

import asyncio
import os
from asyncio import Task
from collections.abc import Iterable
from typing import Any

import pytest

from handfast import watch
from handfast._watch.agent import findings, stuck_tasks
from handfast._watch.agent.kept import _Last
from handfast._watch.agent.pacing import no_pause
from handfast._watch.agent.stuck_tasks import StuckTasks
from handfast._watch.growth import GrowthDetector, PlaceCount
from handfast._watch.never_wakes import NeverWaking, find_never_waking
from handfast._watch.recording.collect import counts_by_place
from handfast._watch.recording.task_creation import place_of
from handfast.watch import Growth

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets")


async def lost() -> None:
    queue = asyncio.Queue[None]()
    await queue.get()


async def woken(event: asyncio.Event) -> None:
    await event.wait()


@pytest.mark.usefixtures("hook", "small_heap")
def test_a_task_that_awaits_what_nothing_holds_is_found_at_the_second_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stuck_tasks, "PERIOD", 0.0)
    monkeypatch.setattr(stuck_tasks, "_SHARE", float("inf"))
    stuck = StuckTasks()
    kept: set[Task[Any]] = set()

    async def main() -> None:
        event = asyncio.Event()
        for _ in range(3):
            kept.add(asyncio.create_task(lost()))
        kept.add(asyncio.create_task(woken(event)))
        await asyncio.sleep(0)
        await asyncio.to_thread(stuck.look, lambda: set(kept))
        assert stuck.never_wakes == (), "at the first look it is not known whether they move"
        await asyncio.to_thread(stuck.look, lambda: set(kept))
        found.extend(stuck.never_wakes)
        assert stuck.not_checked == ()
        again = NeverWaking(not_checked=["takes too long"])
        monkeypatch.setattr(stuck_tasks, "find_never_waking", lambda groups: again)
        await asyncio.to_thread(stuck.look, lambda: set(kept))
        found.extend(stuck.never_wakes)
        assert len(found) == 2, "it stays lost"
        event.set()
        (place,) = {place_of(task) for task in kept if task.get_coro().__name__ == "lost"}  # type: ignore[union-attr]
        assert place is not None
        assert found[0].place == place.id
        for task in kept:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.to_thread(stuck.look, lambda: set(kept))
        assert stuck.never_wakes == (), "they have ended"

    found: list[watch.NeverWakes] = []
    asyncio.run(main())
    never, still_lost = found
    assert still_lost.place == never.place
    assert never.count == 3
    assert never.waiting_at.endswith(" in lost")
    assert never.waits_for == "Queue.get"
    assert never.oldest is not None
    assert never.oldest >= 0


@pytest.mark.usefixtures("hook")
def test_young_tasks_and_those_that_move_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Iterable[Any]] = []

    async def main() -> None:
        turns = asyncio.Queue[None]()

        async def moves() -> None:
            while True:
                await turns.get()

        task = asyncio.create_task(moves())
        await asyncio.sleep(0)
        stuck = StuckTasks()
        stuck.look(lambda: [task])  # not due yet
        assert looked_at == []
        stuck._due = 0.0
        stuck.look(lambda: [task])  # too young
        monkeypatch.setattr(stuck_tasks, "PERIOD", 0.0)
        for expected in (0, 1):
            stuck._due = 0.0
            stuck.look(lambda: [task])
            assert len(list(looked_at[-1])) == expected
        turns.put_nowait(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        stuck._due = 0.0
        stuck.look(lambda: [task])
        assert looked_at[-1] == [], "it awaits another future now"
        task.cancel()

    real = find_never_waking

    def recording(groups: Iterable[Any]) -> Any:
        looked_at.append([key for key, _, _ in groups])
        return real([])

    monkeypatch.setattr(stuck_tasks, "find_never_waking", recording)
    asyncio.run(main())


@pytest.mark.usefixtures("hook")
def test_the_work_of_a_look_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_tasks, "PERIOD", 0.0)

    async def main() -> None:
        tasks = [asyncio.create_task(lost()) for _ in range(300)]
        others = [asyncio.create_task(lost()) for _ in range(300)]
        await asyncio.sleep(0)
        noted = stuck_tasks._note(tasks + others, 1e9)
        assert [each.count for each in noted.values()] == [200, 200]
        monkeypatch.setattr(stuck_tasks, "_MOST_TASKS", 250)
        noted = stuck_tasks._note(tasks + others, 1e9)
        assert [each.count for each in noted.values()] == [200, 50]
        for task in tasks + others:
            task.cancel()

    asyncio.run(main())


@pytest.mark.usefixtures("runtime_folder")
def test_findings_are_in_the_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    growth = Growth(3.1, 4)
    monkeypatch.setattr(GrowthDetector, "growth_of", lambda self, place: growth)
    never = watch.NeverWakes(7, "a.py:1 in f", "Future", 61.0, 3)

    async def main() -> watch.Snapshot:
        return watch.snapshot(0)

    with watch.serve() as served:
        shown = served._agent._findings
        shown._stuck.never_wakes = (never,)
        shown._stuck.not_checked = ("something was not checked",)
        taken = asyncio.run(main())
    assert [place.growth for place in taken.places] == [growth] * len(taken.places)
    assert taken.never_wakes == (never,)
    assert "something was not checked" in taken.not_checked


@pytest.mark.usefixtures("hook")
def test_growth_gets_the_counts_of_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[PlaceCount] = []

    def observe(self: GrowthDetector, now: float, counts: Iterable[PlaceCount]) -> None:
        observed.extend(counts)

    monkeypatch.setattr(GrowthDetector, "observe", observe)

    async def main() -> int:
        tasks = [asyncio.create_task(lost()) for _ in range(4)]
        place = place_of(tasks[0])
        assert place is not None
        tasks.pop().cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        findings.Findings().look(lambda: counts_by_place(no_pause), list)
        for task in tasks:
            task.cancel()
        return place.id

    number = asyncio.run(main())
    (count,) = (each for each in observed if each.place == number)
    assert (count.created, count.alive, sum(count.ages)) == (4, 3, 3)


HUB: list[Task[None]] = []


@pytest.mark.usefixtures("hook", "whole_heap")
def test_finished_tasks_that_a_container_keeps_are_found_at_their_pace() -> None:
    async def short() -> None: ...

    async def main() -> int:
        HUB.extend(asyncio.create_task(short()) for _ in range(5))
        await asyncio.gather(*HUB)
        place = place_of(HUB[0])
        assert place is not None
        return place.id

    number = asyncio.run(main())
    looks = findings.Findings()
    for look in range(3):  # the first is too early, the second sees them for the first time
        if look:
            looks._kept_due = 0.0
            _Last.until = 0.0
        looks.look(list, list)
        kept = [each for each in looks.kept if each.place == number]
        assert [each.count for each in kept] == ([5] if look == 2 else [])
    assert "HUB" in kept[0].container
    HUB.clear()
