"""Spawn, track and join no-op tasks: what does it cost that a task has an owner?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
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
    import holdfast

    async with holdfast.Scope() as scope:
        for _ in range(n):
            scope.spawn(no_op())


async def scope_closed(n: int) -> None:
    import holdfast

    scope = holdfast.Scope()
    for _ in range(n):
        scope.spawn(no_op())
    report = await scope.close(grace=600.0, deadline=600.0)
    report.raise_if_unclean()


CONTESTANTS: tuple[Contestant[Way], ...] = (
    Contestant("bare", bare),
    Contestant("asyncio.TaskGroup", task_group),
    Contestant("by hand", by_hand),
    Contestant("aiotools.TaskScope", aiotools_scope, needs="aiotools"),
    Contestant("aiotools.PersistentTaskGroup", aiotools_persistent, needs="aiotools"),
    Contestant("anyio", anyio_group, needs="anyio"),
    Contestant("aiojobs", aiojobs_scheduler, needs="aiojobs"),
    Contestant("holdfast", scope_left, needs="holdfast"),
    # Joined by a close, which also writes down who ended how: measured, not held to a target.
    Contestant("holdfast, with a report", scope_closed, needs="holdfast"),
)


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with asyncio.Runner() as runner:

        def lap(way: Way) -> Lap:
            return lambda: runner.run(seconds_of(way(n)))

        yield laps_of(CONTESTANTS, lap)


COMPARISON = Comparison(
    work="spawn",
    title="{n:,} no-op tasks spawned, tracked and joined",
    n=20_000,
    rounds=11,
    laps=laps,
    ratios=(
        *(Ratio(each.name, each.name, "bare") for each in CONTESTANTS),
        Ratio("holdfast / asyncio.TaskGroup", "holdfast", "asyncio.TaskGroup"),
    ),
    targets=(
        Target("holdfast", "<=", 1.35),
        Target("holdfast / asyncio.TaskGroup", "<", 1.0),
    ),
)
