"""With the report's fix: a task removes the entry from the dict without checking whose it is."""

from __future__ import annotations

import asyncio

from examples.captures.chat import Chat, Key
from examples.captures.shell import Run

__all__ = ["Captures"]


class Captures:
    """The running captures, one for each key."""

    def __init__(self, chat: Chat, run: Run) -> None:
        self._chat = chat
        self._run = run
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def command(self, key: Key, command: str) -> None:
        """Handle a command: end the capture of the last one, and start another."""
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
        """Stop the bot."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
