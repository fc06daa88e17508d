"""`stream` as a decorator, and sources that are no generators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, assert_type

import pytest

import handfast
from handfast.types import Stream
from tests.runtime.hosting.resources import Life, place
from tests.support.stepping import Stepping, run_on, run_stepping

lives: list[Life] = []


@handfast.stream
async def letters(word: str, *, pause: float = 0.0) -> AsyncGenerator[str, None]:
    """The letters of a word."""
    life = Life(pause)
    lives.append(life)
    life.enter()
    try:
        for letter in word:
            await asyncio.sleep(0)
            yield letter
    finally:
        await life.clean_up()


@handfast.stream(timeout=2)
async def slow_to_leave() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        await asyncio.sleep(60)


class Shelf:
    """Its method is decorated, and it is an async iterable itself."""

    def __init__(self, *books: str) -> None:
        self._books = books

    @handfast.stream
    async def books(self) -> AsyncIterator[str]:
        for book in self._books:
            yield book

    async def __aiter__(self) -> AsyncIterator[str]:
        for book in self._books:
            yield book


class Countdown:
    """An async iterator that has neither `athrow` nor `aclose`."""

    def __init__(self, start: int) -> None:
        self._left = start

    def __aiter__(self) -> Countdown:
        return self

    async def __anext__(self) -> int:
        await asyncio.sleep(0)
        self._left -= 1
        if self._left < 0:
            raise StopAsyncIteration
        return self._left


def test_each_call_of_a_decorated_function_is_a_stream(any_kind: str) -> None:
    async def main() -> None:
        lives.clear()
        async with letters("text") as found:
            assert_type(found, Stream[str])
            assert await anext(found) == "t"
        async with letters(word="reef", pause=0.0) as found:
            assert [letter async for letter in found] == list("reef")
        assert len(lives) == 2
        for life in lives:
            life.check()

    run_on(any_kind, main())


def test_a_decorated_method_is_a_method(kind: str) -> None:
    async def main() -> list[str]:
        async with Shelf("a", "b").books() as books:
            return [book async for book in books]

    assert run_on(kind, main()) == ["a", "b"]


def test_a_decorated_function_keeps_its_name_and_its_text() -> None:
    assert letters.__name__ == "letters"
    assert letters.__doc__ == "The letters of a word."


def test_the_timeout_of_the_decorator_bounds_the_clean_up() -> None:
    async def program(stepping: Stepping) -> float:
        with pytest.raises(TimeoutError, match="more than 2 s"):
            async with slow_to_leave() as items:
                assert_type(items, Stream[int])
                await anext(items)
        return stepping.loop.time()

    assert run_stepping(program) == 1.95


def test_a_stream_of_a_decorated_function_names_the_line_of_its_call() -> None:
    async def never_left() -> None:
        items = await letters("x").__aenter__()  # called here
        await anext(items)
        with pytest.warns(ResourceWarning) as caught:
            del items
        assert Path(__file__).name + place(caller, "called here") in str(caught[0].message)
        await asyncio.sleep(0.01)

    caller = never_left
    asyncio.run(never_left())


def test_a_decorated_function_that_returns_something_else_is_refused_at_its_call() -> None:
    @handfast.stream  # type: ignore[arg-type]
    def number() -> int:
        return 3

    with pytest.raises(TypeError, match="takes an async generator, not 3"):
        number()


@pytest.mark.parametrize(
    ("source", "expected"),
    [(lambda: Shelf("a", "b"), ["a", "b"]), (lambda: Countdown(3), [2, 1, 0])],
)
def test_any_async_iterable_can_be_hosted(any_kind: str, source: Any, expected: list[Any]) -> None:
    async def main() -> list[Any]:
        async with handfast.stream(source()) as items:
            await anext(items)
        async with handfast.stream(source()) as items:
            return [item async for item in items]

    assert run_on(any_kind, main()) == expected


def test_an_iterator_that_cannot_be_thrown_into_ends_with_the_cancel_of_its_owner() -> None:
    async def program(stepping: Stepping) -> None:
        owners: list[asyncio.Task[Any]] = []

        class Noting(Countdown):
            async def __anext__(self) -> int:
                owner = asyncio.current_task()
                assert owner is not None
                owners.append(owner)
                return await super().__anext__()

        async with handfast.stream(Noting(3)) as items:
            await anext(items)
            owners[0].cancel()
            with pytest.raises(handfast.errors.StreamBroken, match="ended by other code"):
                await anext(items)

    run_stepping(program)
