"""Async fixtures of an explored test: set up and torn down inside each schedule.

Setting up such a fixture gives a recipe in its place, and each run cooks from it. A sync fixture
that needs one of them is cooked too: it cannot be made before what it is made of.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

__all__ = ["Recipe", "Recipes", "cooked", "is_async", "too_wide"]


class Recipe:
    """How to make a fixture: its function, and its arguments, which may be recipes again."""

    __slots__ = ("_arguments", "_function", "name")

    def __init__(
        self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        self.name = name
        self._function = function
        self._arguments = arguments

    def __repr__(self) -> str:
        return (
            f"<the fixture {self.name!r}, which is made anew in each schedule: "
            "a test gets it by naming it as an argument>"
        )

    async def make(self, run: _Run) -> Any:
        """The fixture itself, for one run."""
        function = self._function
        arguments = {name: await run.get(value) for name, value in self._arguments.items()}
        made = function(**arguments)
        if inspect.isasyncgenfunction(function):
            return await _entered(self.name, made, run.stack)
        if inspect.isgeneratorfunction(function):
            return _entered_sync(self.name, made, run.stack)
        return await made if inspect.iscoroutinefunction(function) else made


class _Run:
    """What one run has made so far, each fixture once, and how to take it down."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self._made: dict[Recipe, Any] = {}

    async def get(self, value: Any) -> Any:
        if not isinstance(value, Recipe):
            return value
        if value not in self._made:
            self._made[value] = await value.make(self)
        return self._made[value]


async def cooked(
    test: Callable[..., Coroutine[Any, Any, Any]],
    arguments: Mapping[str, Any],
    recipes: list[Recipe],
) -> None:
    """Make all fixtures, run the test with them, take them down in reverse order."""
    async with AsyncExitStack() as stack:
        run = _Run(stack)
        for recipe in recipes:
            await run.get(recipe)
        await test(**{name: await run.get(value) for name, value in arguments.items()})


class Recipes:
    """The hook that gives recipes to explored tests. It is there only if there are such tests."""

    def __init__(self, explored: type[pytest.Item]) -> None:
        self._explored = explored

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        if not isinstance(request.node, self._explored) or not _to_cook(fixturedef, request):
            return (yield)
        # Plugins for asyncio act on fixtures whose function is async. This one is not any more.
        function = fixturedef.func
        bound = _bound(function, request.instance)
        name = fixturedef.argname
        fixturedef.func = lambda **arguments: Recipe(name, bound, arguments)
        try:
            return (yield)
        finally:
            fixturedef.func = function


def is_async(function: object) -> bool:
    """Whether this fixture needs a loop."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def too_wide(item: pytest.Function) -> list[tuple[str, str]]:
    """The async fixtures that outlive the test, each with its scope: no schedule can have its own."""
    return [
        (name, found[-1].scope)
        for name, found in item._fixtureinfo.name2fixturedefs.items()
        if found[-1].scope != "function" and is_async(found[-1].func)
    ]


def _to_cook(fixturedef: Any, request: pytest.FixtureRequest) -> bool:
    if is_async(fixturedef.func):
        return True
    needed = (name for name in fixturedef.argnames if name != "request")
    return any(isinstance(request.getfixturevalue(name), Recipe) for name in needed)


def _bound(function: Any, instance: object) -> Callable[..., Any]:
    """The fixture's function as a method of the instance that runs the test, if it is a method."""
    owner = getattr(function, "__self__", None)
    if instance is not None and owner is not None and isinstance(instance, type(owner)):
        function = function.__func__.__get__(instance)
    found: Callable[..., Any] = function
    return found


async def _entered(name: str, made: AsyncGenerator[Any, None], stack: AsyncExitStack) -> Any:
    try:
        value = await anext(made)
    except StopAsyncIteration:
        raise ValueError(f"the fixture {name!r} did not yield a value") from None

    async def left() -> None:
        async for _ in made:
            await made.aclose()
            raise ValueError(f"the fixture {name!r} yields more than once")

    stack.push_async_callback(left)
    return value


def _entered_sync(name: str, made: Generator[Any, None, None], stack: AsyncExitStack) -> Any:
    try:
        value = next(made)
    except StopIteration:
        raise ValueError(f"the fixture {name!r} did not yield a value") from None

    def left() -> None:
        for _ in made:
            made.close()
            raise ValueError(f"the fixture {name!r} yields more than once")

    stack.callback(left)
    return value
