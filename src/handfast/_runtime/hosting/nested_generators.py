"""Async generators that a hosted one iterates over: closed in its owner task too.

A generator that leaves an `async for` early drops the inner generator. Python then calls the
finalizer that was set when it was first iterated over, and the loop's own closes it in a new task:
a task group inside breaks, and the clean-up ends some time later. So while the hosted code runs,
there is a finalizer that keeps the inner generators for the owner task.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from handfast._runtime.failure import mark_cleanup

T = TypeVar("T")


class NestedGenerators:
    """The generators that were dropped and not closed yet. It does not refer to its host."""

    __slots__ = ("_dropped", "_ended", "_loop_hooks", "errors")

    def __init__(self) -> None:
        self._dropped: list[AsyncGenerator[Any, Any]] = []
        self._loop_hooks: Any = sys.get_asyncgen_hooks()
        self._ended = False
        self.errors: list[BaseException] = []

    async def run(self, awaitable: Awaitable[T]) -> T:
        """Await a step of the hosted generator."""
        result: T = await HookedSteps(_awaiting(awaitable), self._enter_hooks)
        return result

    async def close(self) -> None:
        """Close those that were dropped so far, and what these drop. In the owner task."""
        while self._dropped:
            try:
                await self.run(self._dropped.pop(0).aclose())
            except Exception as error:
                self.errors.append(mark_cleanup(error))

    def end(self) -> None:
        """The owner task ends: what is dropped from now on is closed by the loop."""
        self._ended = True
        while self._dropped:
            self._drop(self._dropped.pop())

    def _enter_hooks(self) -> Any:
        """Set our hooks; returns the previous ones."""
        self._loop_hooks = hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=hooks.firstiter, finalizer=self._drop)
        return hooks

    def _drop(self, generator: AsyncGenerator[Any, Any]) -> None:
        """The finalizer, called by the garbage collector in any thread."""
        if not self._ended:
            self._dropped.append(generator)
        elif self._loop_hooks.finalizer is not None:
            self._loop_hooks.finalizer(generator)


async def _awaiting(awaitable: Awaitable[T]) -> T:
    return await awaitable


class HookedSteps:
    """Runs each step of a coroutine with other hooks for async generators.

    The hooks belong to the thread, so they must not stay while other tasks run.
    """

    __slots__ = ("_coro", "_enter_hooks")

    def __init__(self, coro: Coroutine[Any, Any, Any], enter_hooks: Callable[[], Any]) -> None:
        self._coro = coro
        self._enter_hooks = enter_hooks

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self._step(self._coro.send, None)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coro.throw, *error)

    def close(self) -> None:
        self._step(self._coro.close)

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        hooks = self._enter_hooks()
        try:
            return step(*args)
        finally:
            sys.set_asyncgen_hooks(*hooks)
