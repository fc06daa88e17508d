"""Workers for keyed tasks, and a watch that looks at them between any two handles of the loop.

It knows nothing of how an owner keeps its books: it sees which coroutines are not yet closed, what
each worker does, and what the owner says in public. So it can be held against any owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any, Protocol

AnyTask = asyncio.Task[Any]


class Owner(Protocol):
    """A class that keeps one live task for each key."""

    def __contains__(self, key: Hashable, /) -> bool: ...


class Run:
    """One call of a worker. It is alive from the call until its coroutine is closed, whether or
    not that ever came to its first step."""

    coro: Any

    def __init__(self, number: int, key: Hashable, kind: str) -> None:
        self.number = number
        self.name = f"work:{number}"
        self.key = key
        self.kind = kind
        self.superseded = False

    @property
    def alive(self) -> bool:
        return getcoroutinestate(self.coro) != CORO_CLOSED

    def __repr__(self) -> str:
        return f"{self.kind} worker {self.number} of {self.key!r}"


class Workshop:
    """Makes workers, and notes what each of them does when it may not."""

    def __init__(
        self, owner: Owner, tasks: Callable[[], Iterable[AnyTask]], keys: Iterable[Hashable]
    ) -> None:
        self._owner = owner
        self._tasks = tasks
        self._keys = tuple(keys)
        self.runs: list[Run] = []
        self._open: list[Run] = []
        self.violations: list[str] = []
        self.operations: list[Run] = []

    # --- the workers -----------------------------------------------------------------------

    def worker(self, kind: str) -> Callable[[Hashable], Coroutine[Any, Any, int]]:
        """A worker's function; the task that runs it has a name of its own."""
        body = getattr(self, f"_{kind}")

        def hire(key: Hashable) -> Coroutine[Any, Any, int]:
            run = Run(len(self.runs), key, kind)
            self.runs.append(run)
            run.coro = body(run)
            run.coro.__qualname__ = run.name
            self._open.append(run)
            coro: Coroutine[Any, Any, int] = run.coro
            return coro

        return hire

    async def _instant(self, run: Run) -> int:
        self._act(run)
        return run.number

    async def _brief(self, run: Run) -> int:
        for _ in range(2):
            self._act(run)
            await asyncio.sleep(0)
        self._act(run)
        return run.number

    async def _idle(self, run: Run) -> int:
        self._act(run)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._act(run)
        return run.number

    async def _lingering(self, run: Run) -> int:
        """Its clean-up takes two turns, and a second cancel cuts it."""
        try:
            return await self._idle(run)
        finally:
            await asyncio.sleep(0)
            self._act(run)
            await asyncio.sleep(0)
            self._act(run)

    async def _failing(self, run: Run) -> int:
        await self._brief(run)
        raise ValueError(run)

    async def _clumsy(self, run: Run) -> int:
        """It fails in its clean-up."""
        try:
            return await self._idle(run)
        finally:
            await asyncio.sleep(0)
            self._act(run)
            raise OSError(run)

    def _act(self, run: Run) -> None:
        self.operations.append(run)
        if run.superseded:
            self.violations.append(f"{run} goes on after it was replaced")

    # --- the watch -------------------------------------------------------------------------

    def replaced_by(self, task: AnyTask) -> None:
        """The replacement that gave `task` has returned: the previous task has ended."""
        successor = self.run_of(task)
        for run in self.runs[: successor.number]:
            if run.key == successor.key:
                run.superseded = True

    def run_of(self, task: AnyTask) -> Run:
        return self.runs[int(task.get_name().partition(":")[2])]

    def live(self) -> list[Run]:
        self._open = [run for run in self._open if run.alive]
        return self._open

    def check(self) -> None:
        """At most one live worker for each key, and it is tracked; no entry without one."""
        live = self.live()
        tracked = {task.get_name() for task in self._tasks()}
        for key in self._keys:
            here = [run for run in live if run.key == key]
            if len(here) > 1:
                self.violations.append(f"{len(here)} live tasks of one key: {here}")
            if any(run.name not in tracked for run in here):
                self.violations.append(f"alive and not tracked: {here}")
            if (key in self._owner) != bool(here):
                self.violations.append(f"an entry: {key in self._owner}, a live task: {here}")


async def turns(count: int) -> None:
    """Let the loop go round so many times."""
    for _ in range(count):
        await asyncio.sleep(0)
