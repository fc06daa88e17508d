"""Programs for `explore`: after several commands of one user, only the last may keep editing.

The chat and the command are minimal, so that the timeline shows little but the captures.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from examples.captures import as_proposed as proposed
from examples.captures import as_reported as reported
from examples.captures import fixed as fixed_version
from examples.captures.chat import Chat, Key
from examples.captures.shell import Run

__all__ = ["SlowChat", "as_proposed", "as_reported", "fixed"]

_ALICE = Key(user=1, thread=7)


class _Captures(Protocol):
    def __init__(self, chat: Chat, run: Run) -> None: ...
    def __len__(self) -> int: ...
    async def command(self, key: Key, command: str) -> None: ...
    async def close(self) -> object: ...


class SlowChat:
    """A slow chat that records which messages are edited."""

    def __init__(self, *, pause: float = 0.01, refuses: bool = False) -> None:
        self.messages = 0
        self.edited: list[int] = []
        self._pause = pause
        self._refuses = refuses

    async def send(self, key: Key, text: str) -> int:
        await asyncio.sleep(self._pause)
        self.messages += 1
        return self.messages

    async def edit(self, key: Key, message: int, text: str) -> None:
        if self._refuses:
            raise OSError("the chat is closed")
        await asyncio.sleep(self._pause)
        self.edited.append(message)


@asynccontextmanager
async def _build(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """A command that prints a line, works for a second, and prints another."""

    async def lines() -> AsyncIterator[bytes]:
        yield b"one\n"
        await asyncio.sleep(1)
        yield b"two\n"

    try:
        yield lines()
    finally:
        await asyncio.sleep(0.015)  # it takes a moment to stop


async def _at_once(kind: type[_Captures]) -> None:
    """Two commands of one user arrive together: two handlers run concurrently."""
    chat = SlowChat()
    captures = kind(chat, _build)
    await asyncio.gather(captures.command(_ALICE, "make"), captures.command(_ALICE, "make test"))
    await _only_one_keeps_editing(chat, captures)


async def _one_after_another(kind: type[_Captures]) -> None:
    """Three commands of one user, each after the previous handler has returned."""
    chat = SlowChat()
    captures = kind(chat, _build)
    for command in ("make", "make test", "make install"):
        await captures.command(_ALICE, command)
        await asyncio.sleep(0.02)
    await _only_one_keeps_editing(chat, captures)


async def _only_one_keeps_editing(chat: SlowChat, captures: _Captures) -> None:
    chat.edited.clear()
    await asyncio.sleep(5)
    assert len(set(chat.edited)) <= 1, (
        f"messages {sorted(set(chat.edited))} are edited concurrently"
    )
    assert len(captures) == 0, "all captures have ended, and an entry is left"
    await captures.close()


async def as_reported() -> None:
    await _at_once(reported.Captures)


async def as_proposed() -> None:
    await _one_after_another(proposed.Captures)


async def fixed() -> None:
    await _at_once(fixed_version.Captures)
    await _one_after_another(fixed_version.Captures)
