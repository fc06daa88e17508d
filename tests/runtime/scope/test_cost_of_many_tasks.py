"""A6: what a spawn and a close cost with many tasks, in calls of functions and not in seconds."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from handfast import Scope
from tests.support.stepping import run_on


class Calls:
    """Counts the calls within `with`: those of Python functions, of C functions, and the returns."""

    def __enter__(self) -> Calls:
        self.count = 0
        gc.disable()  # a collection adds the calls of finalizers and of weak references
        sys.setprofile(self._add)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _add(self, *_: Any) -> None:
        self.count += 1


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def calls_of_spawn(scope: Scope) -> int:
    """The fewest of several: the first one after a step reads the clock."""
    counts = []
    for _ in range(5):
        with Calls() as calls:
            scope.spawn(forever())
        counts.append(calls.count)
    await asyncio.sleep(0)
    return min(counts)


@pytest.mark.parametrize("limit", [None, 5])
def test_a_spawn_costs_the_same_with_any_number_of_live_tasks(
    any_kind: str, limit: int | None
) -> None:
    """A6."""

    async def main() -> None:
        scope = Scope(limit=limit)
        alone = await calls_of_spawn(scope)
        for _ in range(2_000):
            scope.spawn(forever())
        await asyncio.sleep(0)
        assert await calls_of_spawn(scope) <= alone
        await scope.close()

    run_on(any_kind, main())


async def leave(scope: Scope) -> None:
    (await scope.close()).raise_if_unclean()


async def cancel_and_leave(scope: Scope) -> None:
    scope.cancel()
    await leave(scope)


@pytest.mark.parametrize("end", [leave, cancel_and_leave])
@pytest.mark.parametrize("part", [0, 2], ids=["no limit", "half of them wait"])
def test_a_close_costs_each_task_the_same(
    any_kind: str, part: int, end: Callable[[Scope], Awaitable[None]]
) -> None:
    """A6: four times the tasks are four times the calls; sixteen times if each looked at all."""

    async def calls_of_close(tasks: int) -> int:
        scope = Scope(limit=tasks // part if part else None)
        for _ in range(tasks):
            scope.spawn(forever())
        await asyncio.sleep(0)
        with Calls() as calls:
            await end(scope)
        return calls.count

    async def main() -> None:
        assert await calls_of_close(800) < 6 * await calls_of_close(200)

    run_on(any_kind, main())
