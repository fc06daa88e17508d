"""Async generators that were begun and neither finished nor closed (HF731)."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import pytest

from holdfast.census import owned_by, recording, take
from holdfast.census.generators import GeneratorOpen
from tests.stepping import run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


async def rows() -> AsyncGenerator[int, None]:
    while True:
        yield 1  # stands here


async def waiting() -> AsyncGenerator[int, None]:
    await asyncio.Event().wait()
    yield 1


def opened() -> list[GeneratorOpen]:
    found = take(["generators"], loop=asyncio.get_running_loop()).things
    return [thing for thing in found if isinstance(thing, GeneratorOpen)]


def test_an_open_generator_is_told_with_the_line_that_began_it_and_where_it_stands() -> None:
    async def main() -> None:
        generator = rows()
        assert opened() == []
        await anext(generator)  # begun here
        [thing] = opened()
        assert (thing.check, thing.code) == ("generators", "HF731")
        assert thing.what == "async generator rows, open"
        assert thing.generator is generator
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# begun here")
        assert thing.owner == "the test"
        [line] = thing.stands()
        assert line.endswith(f":{rows.__code__.co_firstlineno + 2} in rows")
        assert thing.part_of is None
        assert not thing.passing
        await generator.aclose()
        assert opened() == []
        assert thing.over()
        assert thing.stands() == ()
        assert thing.what == "async generator rows, over"

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
        things = opened()
        assert [thing.part_of for thing in things] == [("task", id(task))] * count
        assert not any(thing.passing for thing in things)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_one_that_a_task_does_not_hold_is_nobodys_part() -> None:
    async def main() -> None:
        held = rows()
        await anext(held)
        task = asyncio.create_task(in_a_loop())
        for _ in range(5):
            await asyncio.sleep(0)
        parts = {thing.generator: thing.part_of for thing in opened()}
        assert parts.pop(held) is None
        assert list(parts.values()) == [("task", id(task))]
        del parts
        task.cancel()
        await held.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("by_the_loop", [True, False], ids=["by the loop", "by the program"])
def test_one_that_is_being_closed_is_on_its_way_out(by_the_loop: bool) -> None:
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
        [task] = [thing for thing in take(["tasks"], loop=loop).things if thing.passing]
        found = opened()
        assert [(thing.passing, thing.part_of) for thing in found] == (
            [] if by_the_loop else [(True, task.key)]
        )
        going.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert opened() == []
        assert task.over()
        assert closing is None or closing.done()

    asyncio.run(main())


def test_a_census_keeps_no_generator_alive() -> None:
    async def main() -> None:
        cycle: list[Any] = [rows()]
        cycle.append(cycle)
        await anext(cycle[0])
        gone = weakref.ref(cycle[0])
        census = take(["generators"], loop=asyncio.get_running_loop())
        [thing] = census.things
        del cycle
        gc.collect()
        for _ in range(5):  # the loop closes it
            await asyncio.sleep(0)
        assert thing.over()
        assert thing.what == "async generator rows, over"
        del thing
        gc.collect()
        assert gone() is None
        assert len(census.things) == 1

    asyncio.run(main())


def test_another_with_the_same_id_is_another() -> None:
    async def main() -> None:
        keys = set()
        for _ in range(20):
            generator = rows()
            await anext(generator)
            [thing] = opened()
            keys.add(thing.key)
            await generator.aclose()
            del generator
        assert len(keys) == 20

    asyncio.run(main())


class TestOnALoopThatRunsAlready:
    @pytest.fixture(autouse=True)
    def recorded(self) -> None:
        """Not yet: the loop runs first."""

    def test_births_are_noted_from_then_on_and_no_longer_than_asked_for(self) -> None:
        async def main() -> None:
            generators = [rows() for _ in range(3)]
            await anext(generators[0])
            with recording():
                await anext(generators[1])
            await anext(generators[2])
            born = {thing.generator: thing.birth is not None for thing in opened()}
            assert [born[generator] for generator in generators] == [False, True, False]
            for generator in generators:
                await generator.aclose()

        asyncio.run(main())


def test_a_loop_that_does_not_show_its_generators_is_a_blind_spot(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        return take(["generators"], loop=asyncio.get_running_loop()).not_checked

    expected = ("async generators on a uvloop loop cannot be seen",) if kind == "uvloop" else ()
    assert run_on(kind, main()) == expected
    assert sys.get_asyncgen_hooks().firstiter is None
