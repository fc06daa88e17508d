"""Where a straggler stands: the innermost line of the program, through whatever it awaits (S3.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast._await_stack import await_chain, stand_in
from handfast._runtime.hosting.owner_task import owner_behind
from tests.runtime.hosting.resources import place
from tests.support.stepping import run_on


async def waiting() -> None:
    await asyncio.sleep(3600)  # here


async def in_a_coroutine() -> None:
    await waiting()  # outer


async def in_a_generator() -> AsyncGenerator[int, None]:
    await waiting()  # in the generator
    yield 1


async def over_a_generator() -> None:
    async for _ in in_a_generator():
        pass


@asynccontextmanager
async def never_left() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await waiting()  # leaving


async def leaving_a_manager() -> None:
    async with never_left():
        pass


class Custom:
    def __await__(self) -> Generator[Any, None, None]:
        yield from waiting().__await__()  # custom


async def over_an_awaitable() -> None:
    await Custom()


async def with_a_default() -> None:
    await anext(in_a_generator(), None)


async def closing_a_generator() -> None:
    async def slow() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await waiting()

    generator = slow()
    await anext(generator)
    await generator.aclose()


@pytest.mark.parametrize(
    ("program", "between"),
    [
        (waiting, ()),
        (in_a_coroutine, ((in_a_coroutine, "outer"),)),
        (over_a_generator, ((in_a_generator, "in the generator"),)),
        (leaving_a_manager, ((never_left, "leaving"),)),
        (over_an_awaitable, ((Custom.__await__, "custom"),)),
        (with_a_default, ((in_a_generator, "in the generator"),)),
        (closing_a_generator, ()),
    ],
)
def test_the_chain_ends_at_the_line_that_really_waits(
    kind: str, program: Callable[[], Awaitable[None]], between: tuple[tuple[Any, str], ...]
) -> None:
    """S3.7"""

    async def main() -> tuple[str, ...]:
        task = asyncio.ensure_future(program())
        await asyncio.sleep(0)
        chain = await_chain(task)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return chain

    chain = run_on(kind, main())
    assert chain[-1].endswith(Path(__file__).name + place(waiting, "# here"))
    assert f" in {program.__qualname__}" in chain[0]
    for function, words in between:
        assert any(line.endswith(place(function, words)) for line in chain)
    # asyncio's own frames say nothing about the program.
    assert not any("tasks.py" in line for line in chain)


def test_a_task_that_is_only_in_our_code_has_a_stack(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        task = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        chain = await_chain(task)
        task.cancel()
        return chain

    [line] = run_on(kind, main())
    assert line.endswith(" in sleep")


def test_what_is_held_but_not_awaited_is_not_followed(kind: str) -> None:
    class Opaque:
        """As an awaitable written in C: nobody can see what it runs."""

        def __init__(self) -> None:
            self.spare = waiting()
            self.future = asyncio.get_running_loop().create_future()

        def __await__(self) -> Any:
            return iter(self)

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return next(self.future.__await__())

    async def over_it(thing: Opaque) -> None:
        await thing  # here it ends

    async def main() -> tuple[str, ...]:
        thing = Opaque()
        task = asyncio.create_task(over_it(thing))
        await asyncio.sleep(0)
        chain = await_chain(task)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        thing.spare.close()
        return chain

    [line] = run_on(kind, main())
    assert line.endswith(place(over_it, "here it ends"))


def test_a_task_that_has_ended_stands_nowhere(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        return await_chain(task)

    assert run_on(kind, main()) == ()


def test_a_keeper_stands_where_its_owner_stands(kind: str) -> None:
    """S3.7: code that looks through asyncio.all_tasks finds the line of the generator."""

    async def main() -> tuple[str, ...]:
        async with handfast.stream(in_a_generator()) as items:
            reader = asyncio.ensure_future(items.__anext__())
            for _ in range(5):
                await asyncio.sleep(0)
            [keeper] = asyncio.all_tasks() - {asyncio.current_task(), reader}
            assert keeper.get_name() == "stream in_a_generator"
            chain = await_chain(keeper)
            owner = owner_behind(keeper)
            assert owner is not keeper
            assert await_chain(owner) == chain
            assert owner_behind(reader) is reader
        with suppress(handfast.errors.StreamBroken):
            await reader
        return chain

    assert run_on(kind, main())[-1].endswith(place(waiting, "# here"))


def test_a_stand_in_is_known_whatever_its_argument_is_called(kind: str) -> None:
    @stand_in
    async def watch(renamed: asyncio.Task[None]) -> None:
        await asyncio.wait({renamed})

    async def main() -> tuple[str, ...]:
        task = asyncio.ensure_future(waiting())
        watcher = asyncio.ensure_future(watch(task))
        for _ in range(3):
            await asyncio.sleep(0)
        chain = await_chain(watcher)
        task.cancel()
        await watcher
        return chain

    assert run_on(kind, main())[-1].endswith(place(waiting, "# here"))


def test_the_frames_of_the_runtime_are_not_shown(kind: str) -> None:
    async def main() -> list[tuple[str, ...]]:
        async with handfast.Scope("s") as scope, handfast.Scope("limited", limit=1) as limited:
            keyed = handfast.KeyedTasks(scope)
            tasks = [scope.spawn(waiting()), limited.spawn(waiting()), keyed.start("key", waiting)]
            for _ in range(3):
                await asyncio.sleep(0)
            chains = [await_chain(task) for task in tasks]
            for task in tasks:
                task.cancel()
        return chains

    for chain in run_on(kind, main()):
        assert len(chain) == 1
        assert chain[0].endswith(place(waiting, "# here"))
