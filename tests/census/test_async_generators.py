"""Async generators that were started and neither exhausted nor closed (HF731)."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import pytest

from handfast._census import owned_by, recording, take
from handfast._census.live_object import LiveObject
from tests.support.stepping import run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


async def rows() -> AsyncGenerator[int, None]:
    while True:
        yield 1  # waits here


async def waiting() -> AsyncGenerator[int, None]:
    await asyncio.Event().wait()
    yield 1


def opened() -> list[LiveObject]:
    found = take(["generators"], loop=asyncio.get_running_loop()).objects
    return [live for live in found if not live.library]


def test_an_open_generator_is_listed_with_the_line_that_began_it_and_where_it_waits() -> None:
    async def main() -> None:
        generator = rows()
        assert opened() == []
        await anext(generator)  # started here
        [live] = opened()
        assert (live.check, live.code) == ("generators", "HF731")
        assert live.what == "async generator rows, open"
        assert live.target() is generator
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# started here")
        assert live.owner == "the test"
        [line] = live.waiting_at()
        assert line.endswith(f":{rows.__code__.co_firstlineno + 2} in rows")
        assert live.part_of() is None
        assert not live.ends_by_itself
        await generator.aclose()
        assert opened() == []
        assert live.ended()
        assert live.waiting_at() == ()

    with owned_by("the test"):
        asyncio.run(main())


def test_one_that_has_run_to_its_end_is_not_open() -> None:
    async def short() -> AsyncGenerator[int, None]:
        yield 1

    async def main() -> None:
        generator = short()
        assert [n async for n in generator] == [1]
        assert opened() == []

    asyncio.run(main())


async def in_a_loop() -> None:
    async for _ in rows():
        await asyncio.Event().wait()


async def inside() -> None:
    async for _ in waiting():
        pass


async def in_a_variable() -> None:
    generator = rows()
    await anext(generator)
    await asyncio.Event().wait()


@asynccontextmanager
async def manager() -> AsyncIterator[None]:
    yield


async def in_a_manager() -> None:
    async with manager():
        await asyncio.Event().wait()


async def in_a_stack() -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(manager())
        await asyncio.Event().wait()


async def in_aclosing() -> None:
    async with aclosing(rows()) as generator:
        await anext(generator)
        del generator
        await asyncio.Event().wait()


async def in_another_generator() -> None:
    async def outer() -> AsyncGenerator[int, None]:
        async for row in rows():
            yield row

    async for _ in outer():
        await asyncio.Event().wait()


async def deeper() -> None:
    await in_a_loop()


@pytest.mark.parametrize(
    ("program", "count"),
    [
        (in_a_loop, 1),
        (inside, 1),
        (in_a_variable, 1),
        (in_a_manager, 1),
        (in_a_stack, 1),
        (in_aclosing, 1),
        (in_another_generator, 2),
        (deeper, 1),
    ],
)
def test_what_a_pending_task_iterates_or_holds_is_part_of_it(
    program: Callable[[], Awaitable[None]], count: int
) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(program())
        for _ in range(5):
            await asyncio.sleep(0)
        objects = opened()
        assert [live.part_of() for live in objects] == [("task", id(task))] * count
        assert not any(live.ends_by_itself for live in objects)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_one_that_no_task_holds_is_part_of_nothing() -> None:
    async def main() -> None:
        held = rows()
        await anext(held)
        task = asyncio.create_task(in_a_loop())
        for _ in range(5):
            await asyncio.sleep(0)
        parts = {live.target(): live.part_of() for live in opened()}
        assert parts.pop(held) is None
        assert list(parts.values()) == [("task", id(task))]
        del parts
        task.cancel()
        await held.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("by_the_loop", [True, False], ids=["by the loop", "by the program"])
def test_one_that_is_being_closed_ends_by_itself(by_the_loop: bool) -> None:
    async def main() -> None:
        going = asyncio.Event()

        async def slow() -> AsyncGenerator[int, None]:
            try:
                yield 1
            finally:
                await going.wait()

        generator: Any = slow()
        await anext(generator)
        closing = None if by_the_loop else asyncio.create_task(generator.aclose())
        del generator
        for _ in range(5):
            await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        [task] = [live for live in take(["tasks"], loop=loop).objects if live.ends_by_itself]
        found = opened()
        assert [(live.ends_by_itself, live.part_of()) for live in found] == (
            [] if by_the_loop else [(True, task.key)]
        )
        going.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert opened() == []
        assert task.ended()
        assert closing is None or closing.done()

    asyncio.run(main())


def test_a_snapshot_keeps_no_generator_alive() -> None:
    async def main() -> None:
        cycle: list[Any] = [rows()]
        cycle.append(cycle)
        await anext(cycle[0])
        gone = weakref.ref(cycle[0])
        census = take(["generators"], loop=asyncio.get_running_loop())
        [live] = census.objects
        del cycle
        gc.collect()
        for _ in range(5):  # the loop closes it
            await asyncio.sleep(0)
        assert live.ended()
        del live
        gc.collect()
        assert gone() is None
        assert len(census.objects) == 1

    asyncio.run(main())


def test_another_with_the_same_id_is_another() -> None:
    async def main() -> None:
        keys = set()
        for _ in range(20):
            generator = rows()
            await anext(generator)
            [live] = opened()
            keys.add(live.key)
            await generator.aclose()
            del generator
        assert len(keys) == 20

    asyncio.run(main())


class TestOnALoopThatRunsAlready:
    @pytest.fixture(autouse=True)
    def recorded(self) -> None:
        """Not yet: the loop runs first."""

    def test_creations_are_recorded_only_during_the_recording(self) -> None:
        async def main() -> None:
            generators = [rows() for _ in range(3)]
            await anext(generators[0])
            with recording():
                await anext(generators[1])
            await anext(generators[2])
            recorded = {live.target(): live.creation is not None for live in opened()}
            assert [recorded[generator] for generator in generators] == [False, True, False]
            for generator in generators:
                await generator.aclose()

        asyncio.run(main())


def test_generators_are_not_checked_on_a_loop_that_does_not_list_them(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        return take(["generators"], loop=asyncio.get_running_loop()).not_checked

    expected = ("async generators on a uvloop loop cannot be seen",) if kind == "uvloop" else ()
    assert run_on(kind, main()) == expected
    assert sys.get_asyncgen_hooks().firstiter is None
