"""A chat bot captures the output of `!` commands in the background, one capture per user. A user
sends three commands in quick succession."""

from __future__ import annotations

import asyncio
from typing import Protocol

import holdfast
from holdfast.explore import latency


class Bot(Protocol):
    """One capture per user: the newest. `edits` has whose output each edit of the message shows."""

    edits: list[str]

    async def command(self, user: str, text: str) -> None: ...
    async def close(self) -> None: ...
    def tracked(self) -> int: ...


class AsReported:
    """A dict of tasks; the entry is removed by its task, if it is still that task's own."""

    def __init__(self) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.edits: list[str] = []

    async def capture(self, user: str, text: str) -> None:
        try:
            for _ in range(2):
                await asyncio.sleep(0.02)
                self.edits.append(text)
        finally:
            self.forget(user)

    def forget(self, user: str) -> None:
        if self.tasks.get(user) is asyncio.current_task():
            self.tasks.pop(user, None)

    async def command(self, user: str, text: str) -> None:
        old = self.tasks.pop(user, None)
        if old is not None:
            old.cancel()
        await latency(name="send the keys")
        self.tasks[user] = asyncio.create_task(self.capture(user, text))

    async def close(self) -> None:
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def tracked(self) -> int:
        return len(self.tasks)


class AsTheReportWouldFixIt(AsReported):
    """The pop is unconditional; cancelling comes before creating, with nothing in between."""

    def forget(self, user: str) -> None:
        self.tasks.pop(user, None)

    async def command(self, user: str, text: str) -> None:
        await latency(name="send the keys")
        old = self.tasks.get(user)
        if old is not None:
            old.cancel()
        self.tasks[user] = asyncio.create_task(self.capture(user, text))


class AsItShouldBe:
    """A slot per user."""

    def __init__(self) -> None:
        self.scope = holdfast.Scope("bot")
        self.slots = holdfast.Slots(self.scope)
        self.edits: list[str] = []

    async def capture(self, text: str) -> None:
        for _ in range(2):
            await asyncio.sleep(0.02)
            self.edits.append(text)

    async def command(self, user: str, text: str) -> None:
        await latency(name="send the keys")
        await self.slots.replace(user, lambda: self.capture(text))

    async def close(self) -> None:
        await self.slots.close()
        await self.scope.close()

    def tracked(self) -> int:
        return len(self.slots)


async def three_commands(bot: Bot) -> None:
    """Each command supersedes the ones before it, and nothing is tracked in the end."""
    try:
        await bot.command("ann", "one")
        await asyncio.gather(bot.command("ann", "two"), bot.command("ann", "three"))
        await asyncio.sleep(1)
        assert len(set(bot.edits[-2:])) <= 1, f"two captures edit the same message: {bot.edits}"
        assert not bot.tracked(), "a capture that is over is still tracked"
    finally:
        await bot.close()


async def as_reported() -> None:
    await three_commands(AsReported())


async def as_the_report_would_fix_it() -> None:
    await three_commands(AsTheReportWouldFixIt())


async def as_it_should_be() -> None:
    await three_commands(AsItShouldBe())
