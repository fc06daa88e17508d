"""Closing is linear in what is closed, and clean-up may use its whole time-out (A9)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import handfast
from tests.runtime.scope.workshop import turns
from tests.support.stepping import Stepping, run_on, run_stepping


async def idle() -> None:
    await asyncio.sleep(3600)


@contextlib.asynccontextmanager
async def resource() -> AsyncIterator[None]:
    yield


async def waiting_for_the_limit(count: int) -> handfast.Scope:
    scope = handfast.Scope("s", limit=1)
    for _ in range(count):
        scope.spawn(idle())
    await turns(3)
    return scope


async def holding(count: int) -> handfast.Scope:
    scope = handfast.Scope("s")
    for _ in range(count):
        await scope.hold(resource())
    return scope


def lines_of_close(make: Callable[[int], Awaitable[handfast.Scope]], count: int) -> int:
    """How many lines of Python a close of so many takes: not a matter of the machine's load."""
    lines = 0

    def trace(_frame: Any, event: str, _arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    async def main() -> None:
        scope = await make(count)
        before = sys.gettrace()
        gc.disable()  # a collection adds the lines of finalizers and of callbacks of weak references
        sys.settrace(trace)
        try:
            report = await scope.close()
        finally:
            sys.settrace(before)
            gc.enable()
        assert len(report.cancelled) + len(report.finished) == count

    run_on("stock", main())
    return lines


@pytest.mark.parametrize("make", [waiting_for_the_limit, holding])
def test_twice_as_many_take_twice_as_long_to_close(
    make: Callable[[int], Awaitable[handfast.Scope]],
) -> None:
    """A9: n tasks that wait for the limit, n resources of which each may use the one before."""
    lines_of_close(make, 10)  # what is done once
    assert lines_of_close(make, 400) < 2.5 * lines_of_close(make, 200)


@pytest.mark.parametrize("way", ["task", "shielded", "held"])
def test_clean_up_may_use_all_of_its_time_out(way: str) -> None:
    """A9: not 90 % of it."""

    async def program(_: Stepping) -> tuple[bool, list[str]]:
        log: list[str] = []

        async def clean_up() -> None:
            await asyncio.sleep(9.9)
            log.append("cleaned up")

        async def work() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await clean_up()

        @contextlib.asynccontextmanager
        async def slow() -> AsyncIterator[None]:
            yield
            await clean_up()

        scope = handfast.Scope("s")
        if way == "task":
            scope.spawn(work())
        elif way == "shielded":
            await handfast.shielded(clean_up(), timeout=10)
        else:
            await scope.hold(slow(), timeout=10)
        await asyncio.sleep(1)
        return (await scope.close(timeout=10)).clean, log

    assert run_stepping(program) == (True, ["cleaned up"])


def test_a_place_is_passed_on_in_order_and_past_those_that_were_cancelled(any_kind: str) -> None:
    """A9: also if the place was given to a task that is cancelled before it could take it."""

    async def main() -> list[int]:
        done: list[int] = []

        async def job(number: int) -> None:
            await turns(2)
            done.append(number)

        async with handfast.Scope("s", limit=1) as scope:
            tasks = [scope.spawn(job(number)) for number in range(6)]
            await turns(1)
            tasks[1].cancel()
            tasks[4].cancel()
            while not tasks[0].done():
                await asyncio.sleep(0)
            tasks[2].cancel()
        return done

    done = run_on(any_kind, main())
    assert done[0] == 0
    assert done[-2:] == [3, 5]
