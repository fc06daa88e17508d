"""Async fixtures of an explored test: set up and torn down in each schedule.

pytest sets such a fixture up once, to a `FixtureFactory`, and each run creates its own value from
it. A sync fixture that depends on one of them becomes a factory, too.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest


class FixtureFactory:
    """Creates the value of a fixture from its function and arguments, which may be factories."""

    __slots__ = ("_arguments", "_function", "name")

    def __init__(
        self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        self.name = name
        self._function = function
        self._arguments = arguments

    def __repr__(self) -> str:
        return (
            f"<the fixture {self.name!r}, which is set up in each schedule: "
            "a test gets its value by naming it as an argument>"
        )

    async def create(self, run: _Run) -> Any:
        """Return the value for one run."""
        function = self._function
        arguments = {name: await run.get(value) for name, value in self._arguments.items()}
        value = function(**arguments)
        if inspect.isasyncgenfunction(function):
            return await _entered(self.name, value, run.stack)
        if inspect.isgeneratorfunction(function):
            return _entered_sync(self.name, value, run.stack)
        return await value if inspect.iscoroutinefunction(function) else value


class _Run:
    """The fixtures that one run has set up so far, and their teardown."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self._values: dict[FixtureFactory, Any] = {}

    async def get(self, value: Any) -> Any:
        if not isinstance(value, FixtureFactory):
            return value
        if value not in self._values:
            self._values[value] = await value.create(self)
        return self._values[value]


async def run_with_fixtures(
    test: Callable[..., Coroutine[Any, Any, Any]],
    arguments: Mapping[str, Any],
    factories: list[FixtureFactory],
) -> None:
    """Set up all fixtures, run the test with them, tear them down in reverse order."""
    async with AsyncExitStack() as stack:
        run = _Run(stack)
        for factory in factories:
            await run.get(factory)
        await test(**{name: await run.get(value) for name, value in arguments.items()})


class FixtureHook:
    """Replaces fixtures by factories, for explored tests. Registered only if there are some."""

    def __init__(self, explored: type[pytest.Item]) -> None:
        self._explored = explored

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        if not isinstance(request.node, self._explored) or not _is_per_run(fixturedef, request):
            return (yield)
        # Other plugins for asyncio handle fixtures whose function is async: this one is not.
        function = fixturedef.func
        bound = _bound(function, request.instance)
        name = fixturedef.argname
        fixturedef.func = lambda **arguments: FixtureFactory(name, bound, arguments)
        try:
            return (yield)
        finally:
            fixturedef.func = function


def is_async(function: object) -> bool:
    """Whether the function of a fixture is async."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def wide_async_fixtures(item: pytest.Function) -> list[tuple[str, str]]:
    """Return the async fixtures that outlive the test, with their scopes."""
    return [
        (name, found[-1].scope)
        for name, found in item._fixtureinfo.name2fixturedefs.items()
        if found[-1].scope != "function" and is_async(found[-1].func)
    ]


def _is_per_run(fixturedef: Any, request: pytest.FixtureRequest) -> bool:
    if is_async(fixturedef.func):
        return True
    needed = (name for name in fixturedef.argnames if name != "request")
    return any(isinstance(request.getfixturevalue(name), FixtureFactory) for name in needed)


def _bound(function: Any, instance: object) -> Callable[..., Any]:
    """Return the function, bound to the instance that runs the test if it is a method."""
    owner = getattr(function, "__self__", None)
    if instance is not None and owner is not None and isinstance(instance, type(owner)):
        function = function.__func__.__get__(instance)
    found: Callable[..., Any] = function
    return found


async def _entered(name: str, values: AsyncGenerator[Any, None], stack: AsyncExitStack) -> Any:
    """Return the value that a fixture yields, and leave its teardown to the stack."""
    try:
        value = await anext(values)
    except StopAsyncIteration:
        raise ValueError(f"the fixture {name!r} did not yield a value") from None

    async def tear_down() -> None:
        async for _ in values:
            await values.aclose()
            raise ValueError(f"the fixture {name!r} yields more than once")

    stack.push_async_callback(tear_down)
    return value


def _entered_sync(name: str, values: Generator[Any, None, None], stack: AsyncExitStack) -> Any:
    try:
        value = next(values)
    except StopIteration:
        raise ValueError(f"the fixture {name!r} did not yield a value") from None

    def tear_down() -> None:
        for _ in values:
            values.close()
            raise ValueError(f"the fixture {name!r} yields more than once")

    stack.callback(tear_down)
    return value
