"""Spawn, track and join no-op tasks: the cost of an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
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


# The least that an owner can do: know which tasks are alive, and wait for the last one. There are two
# ways to notice that a task ends. Neither checks or reports anything, or knows who created a task.


async def least_wrapper(n: int) -> None:
    loop = asyncio.get_running_loop()
    live: dict[object, asyncio.Task[None]] = {}
    empty = loop.create_future()

    async def wrapper(coro: Coroutine[None, None, None]) -> None:
        try:
            return await coro
        finally:
            del live[coro]
            if not live:
                empty.set_result(None)

    for _ in range(n):
        coro = no_op()
        live[coro] = asyncio.Task(wrapper(coro), loop=loop, name="no_op")
    await empty


async def least_callback(n: int) -> None:
    loop = asyncio.get_running_loop()
    live: set[asyncio.Task[None]] = set()
    empty = loop.create_future()

    def ended(task: asyncio.Task[None]) -> None:
        live.discard(task)
        if not live:
            empty.set_result(None)

    for _ in range(n):
        coro = no_op()
        task = asyncio.Task(coro, loop=loop, name="no_op")
        live.add(task)
        task.add_done_callback(ended)
    await empty


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
    Contestant("the least wrapper", least_wrapper),
    Contestant("the least callback", least_callback),
)
ON_UVLOOP: tuple[Contestant[Way], ...] = (
    Contestant("bare, uvloop", bare, needs="uvloop"),
    Contestant("asyncio.TaskGroup, uvloop", task_group, needs="uvloop"),
    Contestant("handfast, uvloop", scope_left, needs="uvloop"),
    Contestant("the least wrapper, uvloop", least_wrapper, needs="uvloop"),
    Contestant("the least callback, uvloop", least_callback, needs="uvloop"),
)
# With a tenth of the tasks. A plain task gets slower with their number too, up to 18 times for ten
# times as many; what looks at all tasks for each of them would be a hundred times slower.
FEWER: tuple[Contestant[Way], ...] = (
    Contestant("bare, uvloop, n / 10", bare, needs="uvloop"),
    Contestant("handfast, uvloop, n / 10", scope_left, needs="uvloop"),
)


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with asyncio.Runner() as stock, asyncio.Runner(loop_factory=uvloop_or_stock) as other:

        def lap(way: Way, runner: asyncio.Runner = stock, n: int = n) -> Lap:
            return lambda: runner.run(seconds_of(way(n)))

        yield {
            **laps_of(CONTESTANTS, lap),
            **laps_of(ON_UVLOOP, partial(lap, runner=other)),
            **laps_of(FEWER, partial(lap, runner=other, n=max(1, n // 10))),
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
        Ratio("bare, uvloop, n over n / 10", "bare, uvloop", "bare, uvloop, n / 10"),
        Ratio("handfast, uvloop, n over n / 10", "handfast, uvloop", "handfast, uvloop, n / 10"),
    ),
    targets=(
        Target("handfast", "<=", 1.35),
        Target("asyncio.TaskGroup / handfast", ">=", 1.1),
        Target("handfast, uvloop", "<=", 1.35),
        Target("asyncio.TaskGroup / handfast, uvloop", ">=", 1.0),
        Target("handfast, uvloop, n over n / 10", "<=", 25.0),
    ),
)
