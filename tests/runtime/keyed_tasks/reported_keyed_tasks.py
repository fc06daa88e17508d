"""The captures of `examples/captures`, as reported and with the report's fix, with the interface
that the watch expects of an owner.

Both versions cancel the old task and store the new one with an await in between: they send a message
to the user there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from typing import Any

from examples.captures import as_proposed, as_reported
from examples.captures.chat import Key


class _Chat:
    """A chat in which a message takes one iteration of the loop."""

    async def send(self, key: Key, text: str) -> int:
        await asyncio.sleep(0)
        return 0

    async def edit(self, key: Key, message: int, text: str) -> None: ...


class GuardedPop:
    """As reported: a task removes its entry in its `finally` if the entry is its own."""

    captures: type[as_reported.Captures] | type[as_proposed.Captures] = as_reported.Captures

    def __init__(self) -> None:
        self._work: dict[asyncio.Task[Any], Coroutine[Any, Any, Any]] = {}
        self._captures = self.captures(_Chat(), self._run)
        self.tasks: dict[Any, asyncio.Task[Any]] = self._captures._tasks

    def __contains__(self, key: Hashable) -> bool:
        return key in self.tasks

    async def replace(
        self, key: Hashable, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any
    ) -> asyncio.Task[Any]:
        await self._captures.command(key, "")  # type: ignore[arg-type]
        task = self.tasks[key]
        coro: Any = function(*args)
        task.set_name(coro.__qualname__)
        task.add_done_callback(lambda _: coro.close())  # or it was "never awaited"
        self._work[task] = coro
        return task

    async def cancel(self, key: Hashable) -> None:
        self.tasks[key].cancel()

    @asynccontextmanager
    async def _run(self, command: str) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        task = asyncio.current_task()
        assert task is not None
        await self._work[task]
        yield b"done"


class UnconditionalPop(GuardedPop):
    """With the report's fix: a task removes the entry without a check."""

    captures = as_proposed.Captures
