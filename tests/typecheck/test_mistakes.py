# pyright: strict, reportUnnecessaryTypeIgnoreComment=true
"""Mistakes that mypy and pyright must report, and that the call refuses with a clear error.

A `type: ignore` that hides nothing is an error of both checkers in the nox session `types`, so each
line here that has one is a line that both report.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

import handfast
from handfast.types import TaskEnd


async def length(word: str, times: int = 1) -> int:
    return len(word) * times


async def tell(end: TaskEnd) -> None:
    """A handler that must not be async: no caller would await it."""


class Teller:
    async def __call__(self, end: TaskEnd) -> None: ...


async def tell_often(end: TaskEnd) -> AsyncGenerator[None, None]:
    yield


def refused(call: Callable[[handfast.Scope], Any], *words: str) -> None:
    """The call raises a TypeError with these words, and the scope works on."""

    async def main() -> None:
        scope = handfast.Scope()
        with pytest.raises(TypeError) as caught:
            result = call(scope)
            if asyncio.iscoroutine(result):
                await result
        for word in words:
            assert word in str(caught.value)
        assert await scope.spawn(length("four")) == 4
        assert (await scope.close()).clean

    asyncio.run(main())


def test_an_async_on_failure() -> None:
    """A11: refused when the scope is created, not when the first task fails."""
    with pytest.raises(TypeError, match=r"plain function, not the async .*tell.* may spawn a task"):
        handfast.Scope(on_failure=tell)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain function"):
        handfast.Scope(on_failure=partial(tell))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain function"):
        handfast.Scope(on_failure=Teller())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plain function"):
        handfast.Scope(on_failure=tell_often)  # type: ignore[arg-type]


def test_an_on_failure_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match='"cancel", "report", a function or None, not \'raise\''):
        handfast.Scope(on_failure="raise")  # type: ignore[arg-type]


def test_a_function_in_the_place_of_a_coroutine() -> None:
    def spawn(scope: handfast.Scope) -> object:
        return scope.spawn(length)  # type: ignore[arg-type]

    refused(spawn, "spawn() takes a coroutine", "call it: spawn(fn())")


def test_a_future_in_the_place_of_a_coroutine() -> None:
    def spawn(scope: handfast.Scope) -> object:
        both = asyncio.gather(length("a"), length("b"))
        return scope.spawn(both)  # type: ignore[arg-type]

    refused(spawn, "spawn each child by itself")


def test_a_coroutine_in_the_place_of_a_function() -> None:
    def supervise(scope: handfast.Scope) -> object:
        return scope.supervise(length("four"))  # type: ignore[arg-type]

    def submit(scope: handfast.Scope) -> object:
        return scope.submit(length("four"))  # type: ignore[arg-type]

    def share(scope: handfast.Scope) -> object:
        tasks = handfast.KeyedTasks(scope)
        return tasks.share("key", length("four"))  # type: ignore[arg-type]

    refused(supervise, "supervise() takes an async function")
    refused(submit, "submit() takes an async function and its arguments")
    refused(share, "share() takes an async function and its arguments")


def test_wrong_arguments_of_a_function() -> None:
    async def main() -> None:
        async with handfast.Scope() as scope:
            tasks = handfast.KeyedTasks(scope)
            with pytest.raises(TypeError):
                await tasks.share("key", length, "four", time=2)  # type: ignore[call-arg]
            with pytest.raises(TypeError):
                await tasks.replace("key", length)  # type: ignore[call-arg]
            with pytest.raises(TypeError):
                await asyncio.wrap_future(scope.submit(length))  # type: ignore[call-arg]

    asyncio.run(main())


def test_a_word_in_the_place_of_a_number() -> None:
    with pytest.raises(TypeError, match="limit must be a whole number, not '3'"):
        handfast.Scope(limit="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="grace must be a number of seconds, not '1 s'"):
        handfast.Scope(grace="1 s")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='when must be "failure", "always" or "never"'):
        handfast.Restart("sometimes")  # type: ignore[arg-type]


def test_a_resource_that_cannot_be_entered() -> None:
    @asynccontextmanager
    async def session() -> AsyncGenerator[None, None]:
        yield

    def hold(scope: handfast.Scope) -> object:
        return scope.hold(session)  # type: ignore[call-overload]

    refused(hold, "hold() takes", "call it")


def test_a_stream_of_a_coroutine() -> None:
    with pytest.raises(TypeError, match=r"stream.* takes an async generator.*no `yield`"):
        handfast.stream(length("four"))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"stream.* takes an async generator function.*no `yield`"):
        handfast.stream(length)  # type: ignore[arg-type]


def test_a_race_of_functions() -> None:
    def race(scope: handfast.Scope) -> object:
        return handfast.race(length, length)  # type: ignore[arg-type]

    refused(race, "race() takes")


def test_text_as_the_input_of_a_process() -> None:
    def run(scope: handfast.Scope) -> object:
        return handfast.run_process("cat", input="text")  # type: ignore[arg-type]

    refused(run, "bytes as input", "encode text first")


def test_a_lifespan_whose_scope_closes_after_one_failure() -> None:
    from handfast.bridges.starlette import lifespan

    with pytest.raises(ValueError, match='use "report"'):
        lifespan(on_failure="cancel")  # type: ignore[arg-type]
