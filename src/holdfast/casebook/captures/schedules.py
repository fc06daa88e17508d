"""Commands of one user, on the explored loop: only the last may go on editing.

The chat and the command are small here, so that the timeline shows the captures and little else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from holdfast.casebook.captures import as_it_should_be as should_be
from holdfast.casebook.captures import as_proposed as proposed
from holdfast.casebook.captures import as_reported as reported
from holdfast.casebook.captures.chat import Chat, Key
from holdfast.casebook.captures.shell import Run

__all__ = ["as_it_should_be", "as_proposed", "as_reported"]

_ALICE = Key(user=1, thread=7)


class _Captures(Protocol):
    def __init__(self, chat: Chat, run: Run) -> None: ...
    def __len__(self) -> int: ...
    async def command(self, key: Key, command: str) -> None: ...
    async def close(self) -> object: ...


class _Transcript:
    """A chat that takes its time, and notes who edits."""

    def __init__(self) -> None:
        self.messages = 0
        self.edited: list[int] = []

    async def send(self, key: Key, text: str) -> int:
        await asyncio.sleep(0.01)
        self.messages += 1
        return self.messages

    async def edit(self, key: Key, message: int, text: str) -> None:
        await asyncio.sleep(0.01)
        self.edited.append(message)


@asynccontextmanager
async def _build(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """A command that says something, works for a second, and says more."""

    async def lines() -> AsyncIterator[bytes]:
        yield b"one\n"
        await asyncio.sleep(1)
        yield b"two\n"

    try:
        yield lines()
    finally:
        await asyncio.sleep(0.015)  # told to stop, it tidies up for a moment


async def _at_once(kind: type[_Captures]) -> None:
    """Two commands of one user arrive together: two handlers run side by side."""
    chat = _Transcript()
    captures = kind(chat, _build)
    await asyncio.gather(captures.command(_ALICE, "make"), captures.command(_ALICE, "make test"))
    await _only_one_goes_on(chat, captures)


async def _one_after_another(kind: type[_Captures]) -> None:
    """Three commands of one user, each when the handler of the one before has returned."""
    chat = _Transcript()
    captures = kind(chat, _build)
    for command in ("make", "make test", "make install"):
        await captures.command(_ALICE, command)
        await asyncio.sleep(0.02)
    await _only_one_goes_on(chat, captures)


async def _only_one_goes_on(chat: _Transcript, captures: _Captures) -> None:
    chat.edited.clear()
    await asyncio.sleep(5)
    assert len(set(chat.edited)) <= 1, (
        f"messages {sorted(set(chat.edited))} are edited side by side"
    )
    assert len(captures) == 0, "everything is over, and an entry is left"
    await captures.close()


async def as_reported() -> None:
    await _at_once(reported.Captures)


async def as_proposed() -> None:
    await _one_after_another(proposed.Captures)


async def as_it_should_be() -> None:
    await _at_once(should_be.Captures)
    await _one_after_another(should_be.Captures)
