"""`race`: the first success of several coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from handfast._asyncio_internals import coroutine_function
from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, close_unstarted, require_coroutine
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.errors import HandfastError
from handfast._runtime.scope.scope import Scope
from handfast._runtime.scope.tasks.task_registry import name_of
from handfast._runtime.uncancellable import raise_outcome

T = TypeVar("T")


@coroutine_function
def race(*coros: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Run all of `coros` at once; the result of the first one that succeeds.

    The others are cancelled and joined before this returns. A coroutine that fails has lost; if
    all of them fail, their errors are raised in a group. An error in the clean-up of a loser goes
    to the loop's exception handler.

    >>> import asyncio
    >>> async def mirror(delay, name):
    ...     await asyncio.sleep(delay)
    ...     return name
    >>> asyncio.run(race(mirror(3600, "slow"), mirror(0, "fast")))
    'fast'
    """
    try:
        if not coros:
            raise ValueError("race() of no coroutines has no winner")
        for coro in coros:
            require_coroutine("race", coro, "coroutines")
    except BaseException:
        for coro in coros:
            if isinstance(coro, Coroutine):
                close_unstarted(coro)
        raise
    return _Race(coros, Origin.here(1)).run()


class _Race(Generic[T]):
    """One race, from its start until the last loser has ended."""

    def __init__(self, coros: tuple[Coroutine[Any, Any, T], ...], origin: Origin) -> None:
        self._coros = coros
        self._origin = origin
        self._over = False
        self._results: list[T] = []
        # The number of a coroutine -> its error.
        self._errors: dict[int, Exception] = {}

    async def run(self) -> T:
        scope = Scope("race", on_failure="report")
        tasks: list[asyncio.Task[None]] = []
        cancelled: asyncio.CancelledError | None = None
        try:
            for number, coro in enumerate(self._coros):
                attempt: Any = self._attempt(number, coro)
                attempt.__qualname__ = name_of(coro)
                tasks.append(scope._registry.start(attempt, None, self._origin))
            await self._first_success(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
        finally:
            self._over = True
            try:
                report = await scope._close(
                    0.0, CLOSE_TIMEOUT, CancelReason("race()", self._origin)
                )
            finally:
                # Those that were cancelled before their first step, or never got a task.
                for coro, task in zip_longest(self._coros, tasks):
                    if task is None or task.done():
                        close_unstarted(coro)
        try:
            raise_outcome(next(iter(report.straggler_errors()), None), cancelled)
        finally:
            del cancelled  # it refers to this frame
        if self._results:
            return self._results[0]
        raise ExceptionGroup(
            f"all coroutines of the race at {self._origin} failed",
            [self._error(n, coro) for n, coro in enumerate(self._coros)],
        )

    def _error(self, number: int, coro: Coroutine[Any, Any, T]) -> Exception:
        if number in self._errors:
            return self._errors[number]
        return HandfastError(f"{name_of(coro)!r} was cancelled by other code")

    async def _attempt(self, number: int, coro: Coroutine[Any, Any, T]) -> None:
        try:
            self._results.append(await coro)
        except Exception as error:
            task = asyncio.current_task()
            if self._over and task is not None and task.cancelling():
                raise  # in its clean-up: the scope reports it
            self._errors[number] = error

    async def _first_success(self, tasks: list[asyncio.Task[None]]) -> None:
        pending = set(tasks)
        while pending and not self._results:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
