"""As it should be: a scope owns the captures, and a slot has one at a time."""

from __future__ import annotations

import holdfast
from holdfast.casebook.captures.chat import Chat, Key
from holdfast.casebook.captures.shell import Run

__all__ = ["Captures"]


class Captures:
    """The captures that are under way, one for each key."""

    def __init__(self, chat: Chat, run: Run) -> None:
        self._chat = chat
        self._run = run
        self._scope = holdfast.Scope("captures", on_failure="report")
        self._slots = holdfast.Slots(self._scope)

    def __len__(self) -> int:
        return len(self._slots)

    async def command(self, key: Key, command: str) -> None:
        """Somebody has sent a command: the one before is over, this one begins."""
        await self._slots.replace(key, self._capture, key, command)

    async def _capture(self, key: Key, command: str) -> None:
        text = f"$ {command}\n"
        message = await self._chat.send(key, text)
        async with self._run(command) as lines:
            async for line in lines:
                text += line.decode(errors="replace")
                await self._chat.edit(key, message, text)

    async def close(self) -> holdfast.CloseReport:
        """The bot stops: all captures are over, or named, when this returns."""
        return await self._scope.close(grace=0)
