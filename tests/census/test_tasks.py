"""Pending tasks (HF102), and their owners."""

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

import handfast
from handfast._asyncio_internals import snapshot
from handfast._census import creation_log, owned_by, recording, take
from handfast._census.event_loops import every_task
from handfast._census.live_object import LiveObject
from tests.support.stepping import loop_kinds, run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    # A library is patched if it is imported when the recording begins.
    if "uvloop" in loop_kinds():
        importlib.import_module("uvloop")
    with recording():
        yield


async def forever() -> None:
    await asyncio.Event().wait()  # waits here


def alive() -> dict[asyncio.Task[Any], LiveObject]:
    found = take(["tasks"], loop=asyncio.get_running_loop()).objects
    return {live.target: live for live in found if not live.library}


async def end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_a_pending_task_is_listed_with_its_line_and_where_it_waits(kind: str) -> None:
    async def main() -> None:
        task = asyncio.create_task(forever(), name="poll")  # started here
        await asyncio.sleep(0)
        live = alive()[task]
        assert (live.check, live.code) == ("tasks", "HF102")
        assert live.what == "task 'poll' running forever"
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# started here")
        assert live.owner == "the test"
        assert live.waiting_at()[-1].endswith(" in forever")
        assert not live.ends_by_itself
        assert live.part_of() is None
        await end(task)
        assert live.ended()
        # Read late, it still says what the task ran.
        assert live.what == "task 'poll' running forever"
        assert task not in alive()

    with owned_by("the test"):
        run_on(kind, main())


def test_a_task_of_another_loop_is_not_on_this_one() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(forever())

    async def main() -> None:
        assert task not in alive()
        assert task in [t.target for t in take(["tasks"]).objects]

    asyncio.run(main())
    loop.run_until_complete(end(task))
    loop.close()


def test_the_owner_is_passed_on_to_what_a_task_starts(kind: str) -> None:
    async def outer() -> asyncio.Task[None]:
        await asyncio.sleep(0)
        return asyncio.create_task(forever())

    async def main() -> None:
        with owned_by("first"):
            first = asyncio.create_task(outer())
        with owned_by("second"):
            # Created in the second phase, by a task of the first.
            inner = await first
            assert alive()[inner].owner == "first"
            with creation_log.owned_here_by("third"):
                other = asyncio.create_task(forever())
            assert alive()[other].owner == "third"
        await end(inner)
        await end(other)

    run_on(kind, main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a task does not show its context there")
def test_a_task_made_without_the_loop_has_the_owner_of_its_context(
    kind: str,
) -> None:
    async def outer() -> asyncio.Task[None]:
        return asyncio.Task(forever(), loop=asyncio.get_running_loop())

    async def main() -> None:
        with owned_by("first"):
            made = asyncio.create_task(outer())
        with owned_by("second"):
            task = await made
            assert alive()[task].creation is None
            assert alive()[task].owner == "first"
        await end(task)

    run_on(kind, main())


def test_a_given_context_gets_the_owner_of_the_task(kind: str) -> None:
    async def ask() -> object:
        return creation_log.current_owner()

    async def main() -> None:
        with owned_by("the phase"):
            assert await asyncio.create_task(ask(), context=copy_context()) == "the phase"
            assert await asyncio.create_task(ask(), context=None) == "the phase"

    run_on(kind, main())


def test_a_task_that_could_not_be_created_leaves_no_owner() -> None:
    async def main() -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise RuntimeError("no")

        loop = asyncio.get_running_loop()
        coro = forever()
        before = creation_log.OWNER.get()
        with owned_by("the phase"):
            loop.set_task_factory(refuse)
            with pytest.raises(RuntimeError, match="no"):
                asyncio.create_task(coro)
            loop.set_task_factory(None)
            assert creation_log.OWNER.get() is None
        assert creation_log.OWNER.get() == before
        coro.close()

    asyncio.run(main())


def test_the_owner_task_is_listed_and_its_stand_in_is_to_be_cancelled(kind: str) -> None:
    async def rows() -> AsyncGenerator[int, None]:
        await asyncio.Event().wait()
        yield 1

    async def main() -> None:
        before = set(alive())
        async with handfast.stream(rows()) as items:
            reader = asyncio.ensure_future(anext(items))
            for _ in range(5):
                await asyncio.sleep(0)
            objects = [t for task, t in alive().items() if task not in {*before, reader}]
            [live] = objects
            assert live.target is not live.task_to_cancel
            assert live.task_to_cancel in asyncio.all_tasks()
        with suppress(handfast.errors.StreamBroken):
            await reader

    run_on(kind, main())


def test_a_task_of_a_scope_is_created_on_the_line_that_started_it(kind: str) -> None:
    async def main() -> None:
        before = set(alive())
        async with handfast.Scope("tests") as scope:
            task = scope.spawn(forever())  # started here
            await asyncio.sleep(0)
            [live] = [live for task, live in alive().items() if task not in before]
            assert live.target is task
            assert live.creation is not None
            assert live.creation.origin.source.endswith("# started here")
            task.cancel()

    run_on(kind, main())


def test_a_task_that_closes_a_generator_ends_by_itself() -> None:
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
        [live] = [live for task, live in alive().items() if task not in before]
        assert live.ends_by_itself
        let_go.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert live.ended()

    asyncio.run(main())


def test_a_dropped_snapshot_keeps_no_task_alive() -> None:
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

    assert snapshot(Changing()) == [1]


def test_a_loop_that_is_judged_elsewhere_is_not_listed() -> None:
    class Explored(asyncio.SelectorEventLoop):
        judged_elsewhere = True

    async def main() -> None:
        asyncio.get_running_loop().call_later(60, print)
        census = take(["tasks", "timers"], loop=asyncio.get_running_loop())
        assert census.objects == ()

    with asyncio.Runner(loop_factory=Explored) as runner:
        runner.run(main())


def test_a_task_whose_coroutine_the_program_has_closed_is_not_listed() -> None:
    """tornado ends a task so that has not begun when its loop is closed."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(forever())
    assert task in {live.target for live in take(["tasks"], loop=loop).objects}
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.get_coro().close()
    assert list(take(["tasks"], loop=loop).objects) == []
    loop.close()
