"""What may happen to a bot that captures commands, and what is seen of it. (Report 1.)

The chat records the edits; bash is simulated, so that the explorer chooses when it writes and ends.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from examples.captures import shell
from examples.captures.chat import Chat, Key
from examples.captures.explored import SlowChat
from handfast import scripted

__all__ = [
    "Kind",
    "Replaced",
    "Seen",
    "cancelled_at_each_step",
    "closed_while_they_run",
    "follow_each_other",
    "one_command",
    "replaced_rapidly",
    "together",
]

_ALICE = Key(user=1, thread=7)
_QUICK = scripted.Says(b"one\n"), scripted.Exits(0)
# When it is stopped, it cleans up for a moment; otherwise it works for a second, and writes more.
_LONG = (
    scripted.On(15, scripted.Waits(0.015), scripted.Exits(1)),
    scripted.Says(b"one\n"),
    scripted.Waits(1),
    scripted.Says(b"two\n"),
)


class _Captures(Protocol):
    def __len__(self) -> int: ...
    async def command(self, key: Key, command: str) -> None: ...
    async def close(self) -> object: ...


Kind = Callable[[Chat, shell.Run], _Captures]


class _Counted:
    """Runs commands, and notes how many run at once."""

    def __init__(self) -> None:
        self.most = self._now = 0

    @asynccontextmanager
    async def run(self, command: str) -> AsyncIterator[AsyncIterator[bytes]]:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            async with shell.run(command) as lines:
                yield lines
        finally:
            self._now -= 1


@dataclass
class Seen:
    """What a situation has shown."""

    last: int = 0
    """The number of the message of the last command."""
    tracked: int = 0
    """Entries when the last handler had returned."""
    edited_later: list[int] = field(default_factory=list)
    """The messages that were edited after that."""
    most_at_once: int = 0
    entries: int = 0
    """Entries when all commands had ended by themselves."""
    still_there: int = 0
    """Tasks beside our own when close had returned."""


async def _watched(
    kind: Kind, script: tuple[Any, ...], commands: Callable[[_Captures], Awaitable[None]]
) -> Seen:
    scripted.child("bash", *script)
    chat, counted = SlowChat(), _Counted()
    captures = kind(chat, counted.run)
    await commands(captures)
    seen = Seen(last=chat.messages, tracked=len(captures))
    chat.edited.clear()
    await asyncio.sleep(5)
    # What is sent by a capture itself is sent after its handler has returned.
    seen.last = max(seen.last, chat.messages)
    seen.edited_later = list(chat.edited)
    seen.most_at_once = counted.most
    seen.entries = len(captures)
    await captures.close()
    seen.still_there = len(asyncio.all_tasks()) - 1
    return seen


async def one_command(kind: Kind, *, refused: bool = False) -> Seen:
    """A command that comes to its end, or whose output the chat refuses."""
    scripted.child("bash", *_QUICK)
    captures = kind(SlowChat(refuses=refused), shell.run)
    await captures.command(_ALICE, "make")
    await asyncio.sleep(5)
    seen = Seen(entries=len(captures))
    await captures.close()
    return seen


async def cancelled_at_each_step(kind: Kind, steps: int = 6) -> Seen:
    """A capture is cancelled before its first step; the next one after that; and so on."""
    scripted.child("bash", *_QUICK)
    captures = kind(SlowChat(), shell.run)
    seen = Seen()
    for step in range(steps):
        before = asyncio.all_tasks()
        await captures.command(_ALICE, "make")
        (task,) = asyncio.all_tasks() - before
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(5)
        seen.entries += len(captures)
    await captures.close()
    return seen


async def together(kind: Kind, count: int) -> Seen:
    """Commands of one user arrive at once: their handlers run side by side."""

    async def commands(captures: _Captures) -> None:
        await asyncio.gather(*(captures.command(_ALICE, f"make {n}") for n in range(count)))

    return await _watched(kind, _LONG, commands)


async def follow_each_other(kind: Kind, count: int) -> Seen:
    """Commands of one user, each when the handler of the one before has returned."""

    async def commands(captures: _Captures) -> None:
        for number in range(count):
            await captures.command(_ALICE, f"make {number}")
            await asyncio.sleep(0.02)

    return await _watched(kind, _LONG, commands)


async def closed_while_they_run(kind: Kind, users: int) -> Seen:
    """The bot stops."""
    scripted.child("bash", *_LONG)
    captures = kind(SlowChat(), shell.run)
    for user in range(users):
        await captures.command(Key(user, 0), "make")
    await asyncio.sleep(0.02)
    await captures.close()
    return Seen(entries=len(captures), still_there=len(asyncio.all_tasks()) - 1)


# --- numbers -----------------------------------------------------------------------------------


@dataclass
class Replaced:
    """What is left of many captures when the bot has closed."""

    begun: int
    entries: int
    tasks: int
    references: int


async def replaced_rapidly(kind: Kind, times: int, keys: int) -> Replaced:
    """Commands on one key without a pause, then one each on many keys; nothing is explored."""
    began: weakref.WeakSet[Any] = weakref.WeakSet()
    count = 0

    class Command:
        async def __aenter__(self) -> AsyncIterator[bytes]:
            nonlocal count
            count += 1
            began.add(self)
            return _silence()

        async def __aexit__(self, *_: object) -> None: ...

    class Silent:
        async def send(self, key: Key, text: str) -> int:
            return 1

        async def edit(self, key: Key, message: int, text: str) -> None: ...

    captures = kind(Silent(), lambda command: Command())
    for _ in range(times):
        await captures.command(_ALICE, "make")
        await asyncio.sleep(0)
    for user in range(keys):
        await captures.command(Key(user, 0), "make")
    await asyncio.sleep(0)
    await captures.close()
    gc.collect()
    return Replaced(count, len(captures), len(asyncio.all_tasks()) - 1, len(began))


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""
