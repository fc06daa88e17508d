"""What differs between versions of Python, and what is said where a private name is missing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from asyncio import taskgroups
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from handfast import _explorer_internals
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast.explore import Uncontrolled, explore


async def threads_and_tasks() -> None:
    done: list[int] = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    await asyncio.sleep(0)
    thread.join()
    assert not thread.is_alive()
    with ThreadPoolExecutor(1, initializer=done.append, initargs=(2,)) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, done.append, 3)
    assert done == [1, 2, 3]


def test_this_python_has_every_name_that_the_explorer_needs() -> None:
    assert _explorer_internals.missing_for_explorer() == ()


def test_exploring_inside_a_running_loop_leaves_its_task_as_it_was() -> None:
    async def outer() -> None:
        task = asyncio.current_task()
        assert explore(threads_and_tasks).counterexample is None
        assert asyncio.current_task() is task
        await asyncio.sleep(0)

    asyncio.run(outer())


@pytest.fixture
def looks_anew() -> Iterator[None]:
    _explorer_internals.missing_for_explorer.cache_clear()
    yield
    _explorer_internals.missing_for_explorer.cache_clear()


@pytest.mark.usefixtures("looks_anew")
def test_a_python_without_one_of_them_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(future: Any) -> None:
        future._condition, future._done_callbacks = None, []

    monkeypatch.setattr(Future, "__init__", without)
    with pytest.raises(
        Uncontrolled,
        match=r"concurrent\.futures\.Future\._waiters is not controlled: .*was not checked",
    ):
        explore(threads_and_tasks)


def test_a_task_group_cancels_its_tasks_in_the_same_order_in_every_run() -> None:
    seen: set[str] = set()

    async def program() -> None:
        ended: list[str] = []

        async def wait(name: str) -> None:
            try:
                await asyncio.sleep(1)
            finally:
                ended.append(name)

        async def fail() -> None:
            raise ValueError

        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for name in "abcdef":
                    group.create_task(wait(name))
                group.create_task(fail())
        seen.add("".join(ended))

    for _ in range(50):
        garbage = [object() for _ in range(len(seen) * 7)]
        run(program, Plan(), Settings(stall=0))
        del garbage
    assert seen == {"abcdef"}
    assert vars(taskgroups).get("set", set) is set
