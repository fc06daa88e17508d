"""Many tasks that run until they are cancelled, owned in each of the usual ways.

`memory` weighs them while they live, `close` times their end. All wait on a future of their own:
waiters of one shared Event would add the cost of that Event's queue.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from benchmarks.comparison import Contestant
from benchmarks.work import wait_forever

if TYPE_CHECKING:
    import handfast

DEADLINE = 600.0
"""Far away: what is timed is the close, not how it gives up."""


class Live(Protocol):
    """`Live(n)`, then `spawn()`: n tasks live. `close()`: they have all ended."""

    def __init__(self, n: int) -> None: ...
    async def spawn(self) -> None: ...
    async def close(self) -> None: ...


class Bare:
    """create_task, kept in a list that is as long as needed before the first task is there."""

    def __init__(self, n: int) -> None:
        self._tasks: list[asyncio.Task[None] | None] = [None] * n

    async def spawn(self) -> None:
        for index in range(len(self._tasks)):
            self._tasks[index] = asyncio.create_task(wait_forever())
        await asyncio.sleep(0)

    async def close(self) -> None:
        tasks = [task for task in self._tasks if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class ByHand:
    """create_task, a set, and a done callback that takes the task out of the set."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._tasks: set[asyncio.Task[None]] = set()

    async def spawn(self) -> None:
        for _ in range(self._n):
            task = asyncio.create_task(wait_forever())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


class Enough(Exception):
    """Leaves a TaskGroup whose tasks would go on for ever."""


class TaskGroup:
    """asyncio.TaskGroup, left by an exception: it has no other way to be closed."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._group = asyncio.TaskGroup()

    async def spawn(self) -> None:
        await self._group.__aenter__()
        for _ in range(self._n):
            self._group.create_task(wait_forever())
        await asyncio.sleep(0)

    async def close(self) -> None:
        enough = Enough()
        try:
            await self._group.__aexit__(Enough, enough, None)
        except* Enough:
            pass


class Scope:
    """handfast.Scope, closed."""

    def __init__(self, n: int, *, limit: int | None = None) -> None:
        import handfast

        self._n = n
        self._scope: handfast.Scope = handfast.Scope("live", limit=limit)

    async def spawn(self) -> None:
        for _ in range(self._n):
            self._scope.spawn(wait_forever())
        await asyncio.sleep(0)

    async def close(self) -> None:
        report = await self._scope.close(timeout=DEADLINE)
        report.raise_if_unclean()


class LimitedScope(Scope):
    """The same, in which half of the tasks wait for their turn."""

    def __init__(self, n: int) -> None:
        super().__init__(n, limit=max(1, n // 2))


WAYS: tuple[Contestant[type[Live]], ...] = (
    Contestant("bare", Bare),
    Contestant("asyncio.TaskGroup", TaskGroup),
    Contestant("by hand", ByHand),
    Contestant("handfast", Scope, needs="handfast"),
)
