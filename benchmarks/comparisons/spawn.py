"""Spawn, track and join no-op tasks: the cost of an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.loops import uvloop_or_stock
from benchmarks.work import no_op

Way = Callable[[int], Awaitable[None]]


async def bare(n: int) -> None:
    tasks = [asyncio.create_task(no_op()) for _ in range(n)]
    for task in tasks:
        await task


async def task_group(n: int) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(n):
            group.create_task(no_op())


async def by_hand(n: int) -> None:
    tasks: set[asyncio.Task[None]] = set()
    for _ in range(n):
        task = asyncio.create_task(no_op())
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.wait(tasks)


async def aiotools_scope(n: int) -> None:
    import aiotools

    async with aiotools.TaskScope() as scope:
        for _ in range(n):
            scope.create_task(no_op())


async def aiotools_persistent(n: int) -> None:
    import aiotools

    async with aiotools.PersistentTaskGroup() as group:
        for _ in range(n):
            group.create_task(no_op())


async def anyio_group(n: int) -> None:
    import anyio

    async with anyio.create_task_group() as group:
        for _ in range(n):
            group.start_soon(no_op)


async def aiojobs_scheduler(n: int) -> None:
    import aiojobs

    async with aiojobs.Scheduler(limit=None) as scheduler:
        for _ in range(n):
            await scheduler.spawn(no_op())


async def scope_left(n: int) -> None:
    import handfast

    async with handfast.Scope() as scope:
        for _ in range(n):
            scope.spawn(no_op())


async def scope_closed(n: int) -> None:
    import handfast

    scope = handfast.Scope()
    for _ in range(n):
        scope.spawn(no_op())
    report = await scope.close(grace=600.0, timeout=600.0)
    report.raise_if_unclean()


CONTESTANTS: tuple[Contestant[Way], ...] = (
    Contestant("bare", bare),
    Contestant("asyncio.TaskGroup", task_group),
    Contestant("by hand", by_hand),
    Contestant("aiotools.TaskScope", aiotools_scope, needs="aiotools"),
    Contestant("aiotools.PersistentTaskGroup", aiotools_persistent, needs="aiotools"),
    Contestant("anyio", anyio_group, needs="anyio"),
    Contestant("aiojobs", aiojobs_scheduler, needs="aiojobs"),
    Contestant("handfast", scope_left, needs="handfast"),
    # Joined by a close, which also records how each task ended: measured, but without a target.
    Contestant("handfast, with a report", scope_closed, needs="handfast"),
)
ON_UVLOOP: tuple[Contestant[Way], ...] = (
    Contestant("bare, uvloop", bare, needs="uvloop"),
    Contestant("asyncio.TaskGroup, uvloop", task_group, needs="uvloop"),
    Contestant("handfast, uvloop", scope_left, needs="uvloop"),
)
FEWER = Contestant("handfast, uvloop, n / 10", scope_left, needs="uvloop")


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with asyncio.Runner() as stock, asyncio.Runner(loop_factory=uvloop_or_stock) as other:

        def lap(way: Way, runner: asyncio.Runner = stock, n: int = n) -> Lap:
            return lambda: runner.run(seconds_of(way(n)))

        yield {
            **laps_of(CONTESTANTS, lap),
            **laps_of(ON_UVLOOP, partial(lap, runner=other)),
            **laps_of([FEWER], partial(lap, runner=other, n=max(1, n // 10))),
        }


COMPARISON = Comparison(
    work="spawn",
    title="{n:,} no-op tasks spawned, tracked and joined",
    n=20_000,
    rounds=11,
    laps=laps,
    ratios=(
        *(Ratio(each.name, each.name, "bare") for each in CONTESTANTS),
        Ratio("asyncio.TaskGroup / handfast", "asyncio.TaskGroup", "handfast"),
        *(Ratio(each.name, each.name, "bare, uvloop") for each in ON_UVLOOP),
        Ratio(
            "asyncio.TaskGroup / handfast, uvloop", "asyncio.TaskGroup, uvloop", "handfast, uvloop"
        ),
        Ratio("handfast, uvloop, n over n / 10", "handfast, uvloop", FEWER.name),
    ),
    targets=(
        Target("handfast", "<=", 1.35),
        Target("asyncio.TaskGroup / handfast", ">=", 1.1),
        Target("handfast, uvloop", "<=", 1.35),
        Target("asyncio.TaskGroup / handfast, uvloop", ">=", 1.0),
        Target("handfast, uvloop, n over n / 10", "<=", 12.0),
    ),
)
