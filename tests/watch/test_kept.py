"""Finished tasks in a container are found, with the name of the container and their place."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from handfast._watch.agent import kept
from handfast._watch.agent.kept import find_kept
from handfast._watch.snapshot import KeptTasks

pytestmark = pytest.mark.usefixtures("whole_heap")

LOG: list[asyncio.Task[None]] = []


class Hub:
    def __init__(self) -> None:
        self._by_user: defaultdict[str, list[asyncio.Task[None]]] = defaultdict(list)
        self._recent: deque[asyncio.Task[None]] = deque()


@pytest.fixture(autouse=True)
def nothing_found_before() -> Iterator[None]:
    kept._Last.until = 0.0
    kept._Last.seen = {}
    yield
    kept._Last.until = 0.0
    LOG.clear()


def find_at_second_look(place_of: kept.PlaceOf) -> tuple[KeptTasks, ...]:
    for _ in range(2):
        kept._Last.until = 0.0
        found = find_kept(place_of)
    return found


async def nothing() -> None: ...


async def done(count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(nothing()) for _ in range(count)]
    await asyncio.gather(*tasks)
    return tasks


def test_containers_of_finished_tasks_are_found_by_name() -> None:
    async def run() -> tuple[KeptTasks, ...]:
        hub = Hub()
        LOG.extend(await done(100))
        hub._recent.extend(await done(30))
        hub._by_user["anna"] += await done(10)
        pending = asyncio.create_task(asyncio.sleep(1000))
        hub._by_user["anna"].append(pending)
        places = {
            **{id(task): 1 for task in LOG},
            **{id(task): 2 for task in hub._recent},
            **{id(task): 3 for task in hub._by_user["anna"]},
        }
        found = await asyncio.to_thread(find_at_second_look, lambda task: places.get(id(task)))
        pending.cancel()
        return found

    found = [each for each in asyncio.run(run()) if each.place is not None]
    assert found == [
        KeptTasks(f"LOG of module {__name__}", 100, 1),
        KeptTasks("attribute _recent of Hub", 30, 2),
        KeptTasks("in attribute _by_user of Hub", 10, 3),
    ]


class Proxy:
    """As werkzeug's and Django's, which compute the class of what they stand for."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("outside of a request")

    def __str__(self) -> str:
        raise RuntimeError("outside of a request")


class Guarded:
    __slots__ = ("log",)

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_no_code_of_the_objects_that_are_met_runs() -> None:
    async def run() -> tuple[KeptTasks, ...]:
        guarded, proxy = Guarded(), Proxy()
        tasks: list[Any] = [Proxy(), *await done(3)]
        namespace: dict[str, Any] = {"__name__": proxy}
        guarded.log = proxy.log = namespace["log"] = tasks  # type: ignore[attr-defined]
        found = await asyncio.to_thread(find_at_second_look, lambda _: None)
        return tuple(each for each in found if "log" in each.container)

    found = asyncio.run(run())
    assert [(each.container, each.count) for each in found] in (
        [("attribute log of Guarded", 3)],
        [("attribute log of Proxy", 3)],
    )


def test_one_finished_task_and_those_in_a_local_variable_are_not() -> None:
    async def run() -> tuple[KeptTasks, ...]:
        LOG.extend(await done(1))
        local = await done(10)
        own = {*local, *LOG}
        found = await asyncio.to_thread(
            find_at_second_look, lambda task: 1 if task in own else None
        )
        assert local
        return found

    assert [each for each in asyncio.run(run()) if each.place is not None] == []


def test_tasks_that_finish_now_and_are_discarded_in_a_moment_are_not() -> None:
    """As each server does it: under load some are always between their end and their callback."""
    tasks: set[asyncio.Task[None]] = set()

    class Server:
        def __init__(self) -> None:
            self.tasks = tasks

    async def at_this_moment() -> list[Any]:
        for _ in range(10):
            task = asyncio.create_task(nothing())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0)  # their callbacks are called in the next step of the loop
        kept._Last.until = 0.0
        finished = sum(task.done() for task in tasks)
        return [finished, *find_kept(lambda task: 1 if task in tasks else None)]

    async def run() -> list[list[Any]]:
        server = Server()
        looks = [await at_this_moment() for _ in range(3)]
        assert server.tasks is tasks
        return looks

    for finished, *found in asyncio.run(run()):
        assert finished == 10
        assert [each for each in found if each.place is not None] == []


def test_a_search_is_not_repeated_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Any] = []

    def search(place_of: kept.PlaceOf) -> tuple[KeptTasks, ...]:
        searches.append(place_of)
        return ()

    clock = SimpleNamespace(
        monotonic=iter([1000.0, 1049.0, 1051.0]).__next__,
        thread_time=iter([1.0, 1.5, 2.0, 2.5]).__next__,
    )
    monkeypatch.setattr(kept, "_search", search)
    monkeypatch.setattr(kept, "time", clock)
    for _ in range(3):
        find_kept(lambda task: None)
    assert len(searches) == 2
