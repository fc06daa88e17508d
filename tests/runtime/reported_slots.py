"""A task for each key as it was reported: with the identity guard, and as the report wants it.

Both leave "cancel the old one" and "store the new one" apart by an await, because what calls
them sends a message in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class GuardedPop:
    """The entry goes in the task's own `finally`, if it is this task's."""

    def __init__(self) -> None:
        self.tasks: dict[Hashable, asyncio.Task[Any]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self.tasks

    async def replace(
        self, key: Hashable, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any
    ) -> asyncio.Task[Any]:
        await self.cancel(key)
        coro: Any = function(*args)
        task = asyncio.create_task(self._capture(key, coro), name=coro.__qualname__)
        self.tasks[key] = task
        task.add_done_callback(lambda _: coro.close())  # or it was "never awaited"
        return task

    async def cancel(self, key: Hashable) -> None:
        task = self.tasks.get(key)
        if task is not None and not task.done():
            task.cancel()
            await asyncio.sleep(0)  # a message to the user

    async def _capture(self, key: Hashable, coro: Coroutine[Any, Any, Any]) -> None:
        try:
            await coro
        finally:
            self._forget(key)

    def _forget(self, key: Hashable) -> None:
        if self.tasks.get(key) is asyncio.current_task():
            self.tasks.pop(key, None)


class UnconditionalPop(GuardedPop):
    """The same without the guard, which is what the report asks for."""

    def _forget(self, key: Hashable) -> None:
        self.tasks.pop(key, None)
