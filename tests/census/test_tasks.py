"""Tasks that have not ended (HF102), and whose they are."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest

import holdfast
from holdfast.census import births, owned_by, recording, take
from holdfast.census.tasks import TaskAlive, every_task, members_of
from tests.stepping import loop_kinds, run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    # A library is hooked if it is there when recording begins.
    if "uvloop" in loop_kinds():
        importlib.import_module("uvloop")
    with recording():
        yield


async def forever() -> None:
    await asyncio.Event().wait()  # stands here


def alive() -> dict[asyncio.Task[Any], TaskAlive]:
    found = take(["tasks"], loop=asyncio.get_running_loop()).things
    return {thing.task: thing for thing in found if isinstance(thing, TaskAlive)}


async def end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_pending_task_is_told_with_its_line_and_where_it_stands(kind: str) -> None:
    async def main() -> None:
        task = asyncio.create_task(forever(), name="poll")  # started here
        await asyncio.sleep(0)
        thing = alive()[task]
        assert (thing.check, thing.code) == ("tasks", "HF102")
        assert thing.what == "task 'poll' running forever"
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# started here")
        assert thing.owner == "the test"
        assert thing.stands()[-1].endswith(" in forever")
        assert not thing.passing
        assert thing.part_of is None
        await end(task)
        assert thing.over()
        # Read late, it still says what the task was.
        assert thing.what == "task 'poll' running forever"
        assert task not in alive()

    with owned_by("the test"):
        run_on(kind, main())


def test_a_task_of_another_loop_is_not_on_this_one() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(forever())

    async def main() -> None:
        assert task not in alive()
        assert task in [t.task for t in take(["tasks"]).things if isinstance(t, TaskAlive)]

    asyncio.run(main())
    loop.run_until_complete(end(task))
    loop.close()


def test_the_owner_travels_to_what_a_task_starts(kind: str) -> None:
    async def outer() -> asyncio.Task[None]:
        await asyncio.sleep(0)
        return asyncio.create_task(forever())

    async def main() -> None:
        with owned_by("first"):
            first = asyncio.create_task(outer())
        with owned_by("second"):
            # Born while the second phase lasts, of a task of the first.
            inner = await first
            assert alive()[inner].owner == "first"
            with births.owned_here_by("third"):
                other = asyncio.create_task(forever())
            assert alive()[other].owner == "third"
        await end(inner)
        await end(other)

    run_on(kind, main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a task does not show its context there")
def test_a_task_that_was_made_past_the_loop_belongs_to_whoever_its_context_came_from(
    kind: str,
) -> None:
    async def outer() -> asyncio.Task[None]:
        return asyncio.Task(forever(), loop=asyncio.get_running_loop())

    async def main() -> None:
        with owned_by("first"):
            made = asyncio.create_task(outer())
        with owned_by("second"):
            task = await made
            assert alive()[task].birth is None
            assert alive()[task].owner == "first"
        await end(task)

    run_on(kind, main())


def test_a_context_that_the_program_gives_says_whose_the_task_is_as_well(kind: str) -> None:
    async def ask() -> object:
        return births.owner_now()

    async def main() -> None:
        with owned_by("the phase"):
            assert await asyncio.create_task(ask(), context=copy_context()) == "the phase"
            assert await asyncio.create_task(ask(), context=None) == "the phase"

    run_on(kind, main())


def test_a_task_that_could_not_be_made_leaves_no_owner_behind() -> None:
    async def main() -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise RuntimeError("no")

        loop = asyncio.get_running_loop()
        coro = forever()
        before = births.OWNER.get()
        with owned_by("the phase"):
            loop.set_task_factory(refuse)
            with pytest.raises(RuntimeError, match="no"):
                asyncio.create_task(coro)
            loop.set_task_factory(None)
            assert births.OWNER.get() is None
        assert births.OWNER.get() == before
        coro.close()

    asyncio.run(main())


def test_the_owner_behind_a_keeper_is_told_and_the_keeper_is_the_one_to_cancel(kind: str) -> None:
    async def rows() -> AsyncGenerator[int, None]:
        await asyncio.Event().wait()
        yield 1

    async def main() -> None:
        before = set(alive())
        async with holdfast.stream(rows()) as items:
            reader = asyncio.ensure_future(anext(items))
            for _ in range(5):
                await asyncio.sleep(0)
            things = [t for task, t in alive().items() if task not in {*before, reader}]
            [thing] = things
            assert thing.task is not thing.listed
            assert thing.listed in asyncio.all_tasks()
        with suppress(holdfast.StreamBroken):
            await reader

    run_on(kind, main())


def test_a_task_of_a_scope_is_born_on_the_line_that_started_it(kind: str) -> None:
    async def main() -> None:
        before = set(alive())
        async with holdfast.Scope("tests") as scope:
            task = scope.spawn(forever())  # started here
            await asyncio.sleep(0)
            [thing] = [thing for task, thing in alive().items() if task not in before]
            assert thing.task is task
            assert thing.birth is not None
            assert thing.birth.origin.source.endswith("# started here")
            task.cancel()

    run_on(kind, main())


def test_the_closing_of_a_generator_by_the_loop_is_passing() -> None:
    async def main() -> None:
        let_go = asyncio.Event()

        async def rows() -> AsyncGenerator[int, None]:
            try:
                yield 1
            finally:
                await let_go.wait()

        generator: Any = rows()
        await anext(generator)
        before = set(alive())
        del generator
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        [thing] = [thing for task, thing in alive().items() if task not in before]
        assert thing.passing
        let_go.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert thing.over()

    asyncio.run(main())


def test_nothing_of_a_census_keeps_a_task_once_it_is_gone() -> None:
    async def main() -> weakref.ref[Any]:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        census = take(loop=asyncio.get_running_loop())
        assert ("task", id(task)) in census.keys
        await end(task)
        return weakref.ref(task)

    gone = asyncio.run(main())
    gc.collect()
    assert gone() is None


def test_tasks_can_be_listed_while_other_threads_make_them() -> None:
    stop = threading.Event()

    async def churn() -> None:
        while not stop.is_set():
            await asyncio.gather(*[asyncio.sleep(0) for _ in range(20)])

    thread = threading.Thread(target=lambda: asyncio.run(churn()))
    thread.start()
    try:
        for _ in range(200):
            assert isinstance(every_task(), list)
    finally:
        stop.set()
        thread.join()


def test_a_set_that_changes_while_it_is_read_is_read_again() -> None:
    class Changing:
        reads = 0

        def __iter__(self) -> Iterator[int]:
            self.reads += 1
            if self.reads == 1:
                raise RuntimeError("Set changed size during iteration")
            return iter([1])

    assert members_of(Changing()) == [1]


def test_a_loop_that_somebody_else_judges_is_left_alone() -> None:
    class Explored(asyncio.SelectorEventLoop):
        looked_after = True

    async def main() -> None:
        asyncio.get_running_loop().call_later(60, print)
        census = take(["tasks", "timers"], loop=asyncio.get_running_loop())
        assert census.things == ()

    with asyncio.Runner(loop_factory=Explored) as runner:
        runner.run(main())
