"""What is the program's own, and what a library keeps for itself and is not held against it."""

from __future__ import annotations

import asyncio
import importlib
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.loop.task_table import TaskTable, describe
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast.explore import explore, victim

LIBRARY = '''
import asyncio

class Cache:
    """Expires what it has with a timer, and cleans up in a task that nobody else knows."""

    def __init__(self):
        self.values = {}

    def put(self, key, ttl):
        self.values[key] = key
        asyncio.get_running_loop().call_later(ttl, self.values.pop, key, None)

    def put_with_a_function(self, key, ttl):
        self.values[key] = key
        asyncio.get_running_loop().call_later(ttl, self.expire, key)

    def expire(self, key):
        del self.values[key]

    def clean(self, seconds):
        self.cleaning = asyncio.create_task(self.sleep(seconds), name="cleaning")
        return self.cleaning

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package in a folder that looks as pip leaves it."""
    (tmp_path / "a_cache.py").write_text(LIBRARY)
    (tmp_path / "a_cache-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("a_cache")
    del sys.modules["a_cache"]


def test_a_task_that_a_library_keeps_for_itself_is_never_a_victim(library: Any) -> None:
    cancelled: list[str] = []

    async def program() -> None:
        task = library.Cache().clean(0.01)
        own = asyncio.create_task(asyncio.sleep(0.01), name="own")
        await asyncio.wait([task, own])
        cancelled.extend(t.get_name() for t in (task, own) if t.cancelled())

    exploration = explore(program, cancel=True, schedules=100)
    assert exploration.counterexample is None
    assert set(cancelled) == {"own"}


def test_without_a_task_of_its_own_the_result_says_that_nothing_was_cancelled(library: Any) -> None:
    async def program() -> None:
        await library.Cache().clean(0.01)

    exploration = explore(program, cancel=True)
    assert exploration.coverage.points_seen == 0
    assert any("creates no task of its own" in missing for missing in exploration.not_checked)


def test_a_library_may_take_a_moment_to_end_and_no_longer(library: Any) -> None:
    kept: list[Any] = []

    async def soon() -> None:
        kept.append(library.Cache().clean(1))

    async def never() -> None:
        kept.append(library.Cache().clean(3_600))

    assert explore(soon).counterexample is None
    left = explore(never).counterexample
    assert left is not None
    assert left.code == "HF102"


@pytest.mark.parametrize("put", ["put", "put_with_a_function"])
def test_the_timers_that_a_library_always_leaves_are_its_way_of_working(
    library: Any, put: str
) -> None:
    async def program() -> None:
        getattr(library.Cache(), put)("key", 10)

    assert explore(program).counterexample is None


@pytest.mark.parametrize("put", ["put", "put_with_a_function"])
def test_a_timer_that_a_library_leaves_only_when_it_is_cancelled_is_found(
    library: Any, put: str
) -> None:
    async def program() -> None:
        cache = library.Cache()

        async def work() -> None:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                getattr(cache, put)("key", 10)
                raise

        await victim(work())

    assert explore(program).counterexample is None
    found = explore(program, cancel=True).counterexample
    assert found is not None
    assert found.code == "HF721"
    assert found.replay().code == "HF721"


def test_a_server_that_asyncio_itself_has_lost_is_not_held_against_the_program() -> None:
    async def program() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 9000)
        server.close()
        await server.wait_closed()

    assert explore(program, cancel="main").counterexample is None


def test_a_finding_that_does_not_come_again_is_counted_and_not_believed() -> None:
    runs = 0

    async def program() -> None:
        nonlocal runs
        runs += 1
        await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))
        assert runs > 1, "the first time only"

    exploration = explore(program)
    assert exploration.counterexample is None
    assert exploration.unrepeated == 1
    assert any("did not happen again" in missing for missing in exploration.not_checked)


def test_tasks_go_when_the_program_drops_them() -> None:
    """The roll holds nobody: a run under the explorer frees what a run without it would free."""
    left: list[bool] = []

    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(0))
        gone = weakref.ref(task)
        await task
        del task
        await asyncio.sleep(0)  # the handle that woke us has it until its step is over
        left.append(gone() is not None)

    for plan in (Plan(), Plan(observe=True)):
        run(program, plan, Settings(cancel="tasks"))
    assert left == [False, False]


def test_the_roll_knows_numbers_and_names() -> None:
    async def main() -> None:
        roll = TaskTable()
        task = asyncio.create_task(asyncio.sleep(0))
        named = asyncio.create_task(asyncio.sleep(0), name="named")
        for each in (task, named):
            roll.append(each)
        assert [roll.index(each) for each in (task, named, object())] == [0, 1, -1]
        assert (roll.get(1), roll.get(2)) == (named, None)
        assert task in roll
        assert list(roll) == [task, named]
        assert [describe(task), describe(named)] == ["sleep", "named"]
        await asyncio.wait([task, named])

    asyncio.run(main())
