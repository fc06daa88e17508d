"""As the report would fix it: a task takes the entry out of the dict, whosever it is."""

from __future__ import annotations

import asyncio

from holdfast.casebook.captures.chat import Chat, Key
from holdfast.casebook.captures.shell import Run

__all__ = ["Captures"]


class Captures:
    """The captures that are under way, one for each key."""

    def __init__(self, chat: Chat, run: Run) -> None:
        self._chat = chat
        self._run = run
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def command(self, key: Key, command: str) -> None:
        """Somebody has sent a command: the one before is over, this one begins."""
        self._cancel(key)
        message = await self._chat.send(key, f"$ {command}")
        self._tasks[key] = asyncio.create_task(self._capture(key, message, command))

    def _cancel(self, key: Key) -> None:
        task = self._tasks.pop(key, None)
        if task is not None and not task.done():
            task.cancel()

    async def _capture(self, key: Key, message: int, command: str) -> None:
        text = f"$ {command}\n"
        try:
            async with self._run(command) as lines:
                async for line in lines:
                    text += line.decode(errors="replace")
                    await self._chat.edit(key, message, text)
        finally:
            self._tasks.pop(key, None)

    async def close(self) -> None:
        """The bot stops."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
