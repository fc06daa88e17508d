"""Fixed: a scope owns the captures, and each key has one task at a time."""

from __future__ import annotations

import handfast
from examples.captures.chat import Chat, Key
from examples.captures.shell import Run

__all__ = ["Captures"]


class Captures:
    """The running captures, one for each key."""

    def __init__(self, chat: Chat, run: Run) -> None:
        self._chat = chat
        self._run = run
        self._scope = handfast.Scope("captures", on_failure="report")
        self._tasks = handfast.KeyedTasks(self._scope)

    def __len__(self) -> int:
        return len(self._tasks)

    async def command(self, key: Key, command: str) -> None:
        """Handle a command: end the capture of the last one, and start another."""
        await self._tasks.replace(key, self._capture, key, command)

    async def _capture(self, key: Key, command: str) -> None:
        text = f"$ {command}\n"
        message = await self._chat.send(key, text)
        async with self._run(command) as lines:
            async for line in lines:
                text += line.decode(errors="replace")
                await self._chat.edit(key, message, text)

    async def close(self) -> handfast.types.CloseReport:
        """Stop the bot. The report names each capture that has not ended."""
        return await self._scope.close(grace=0)
