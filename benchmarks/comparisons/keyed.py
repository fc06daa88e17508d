"""Replace the running task of a key, against a careful implementation with a dict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.work import wait_forever

AsyncFunction = Callable[[], Coroutine[Any, Any, None]]
Replace = Callable[[Hashable, AsyncFunction], Awaitable[object]]
Way = Callable[[], AbstractAsyncContextManager[Replace]]


class DictOfTasks:
    """One running task per key, with every step that short versions omit."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def replace(self, key: Hashable, function: AsyncFunction) -> asyncio.Task[None]:
        # Looked up again after each wait: another caller may have stored its own task.
        while (old := self._tasks.get(key)) is not None and not old.done():
            old.cancel()
            await asyncio.wait((old,))
        task = asyncio.create_task(function())
        self._tasks[key] = task
        task.add_done_callback(partial(self._forget, key))
        return task

    def _forget(self, key: Hashable, task: asyncio.Task[None]) -> None:
        # By identity: a predecessor that ends late must not remove its successor.
        if self._tasks.get(key) is task:
            del self._tasks[key]

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@asynccontextmanager
async def by_hand() -> AsyncIterator[Replace]:
    keyed = DictOfTasks()
    try:
        yield keyed.replace
    finally:
        await keyed.close()


@asynccontextmanager
async def keyed_replace() -> AsyncIterator[Replace]:
    import handfast

    scope = handfast.Scope("keyed")
    keyed = handfast.KeyedTasks(scope)
    try:
        yield keyed.replace
    finally:
        await keyed.close()
        await scope.close()


CONTESTANTS: tuple[Contestant[Way], ...] = (
    Contestant("by hand", by_hand),
    Contestant("handfast", keyed_replace, needs="handfast"),
)


async def one_key(replace: Replace, n: int) -> None:
    """Each task is replaced before its first step."""
    for _ in range(n):
        await replace("key", wait_forever)


async def many_keys(replace: Replace, n: int) -> None:
    """Half of the calls use a free key; the others replace a running task."""
    for _ in range(2):
        for key in range(max(1, n // 2)):
            await replace(key, wait_forever)


PATTERNS = {"one key": one_key, "many keys": many_keys}
Pattern = Callable[[Replace, int], Awaitable[None]]


async def seconds_to_replace(way: Way, pattern: Pattern, n: int) -> float:
    async with way() as replace:
        return await seconds_of(pattern(replace, n))


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    with asyncio.Runner() as runner:

        def lap(way: Way, pattern: Pattern) -> Lap:
            return lambda: runner.run(seconds_to_replace(way, pattern, n))

        yield {
            f"{name}, {label}": each
            for label, pattern in PATTERNS.items()
            for name, each in laps_of(CONTESTANTS, partial(lap, pattern=pattern)).items()
        }


COMPARISON = Comparison(
    work="keyed",
    title="{n:,} times KeyedTasks.replace, against a dict of tasks by hand",
    n=10_000,
    rounds=11,
    laps=laps,
    ratios=tuple(Ratio(label, f"handfast, {label}", f"by hand, {label}") for label in PATTERNS),
    targets=tuple(Target(label, "<=", 1.5) for label in PATTERNS),
)
