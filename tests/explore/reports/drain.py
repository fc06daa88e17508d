"""A child process, and the task that drains its stderr. The child has last words when it is told to
end; whoever ends it must hear them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import holdfast
from holdfast.explore import Errs, Exits, On, Waits, child

LAST_WORDS = b"last words\n"


def script() -> None:
    child("agent", On(signal.SIGTERM, Errs(LAST_WORDS, whole=True), Exits(3)), Waits())


class AsReported:
    """The handle is cleared, and the drain cancelled after it."""

    def __init__(self) -> None:
        self.proc: asyncio.subprocess.Process | None = None
        self.drain_task: asyncio.Task[None] | None = None
        self.heard = b""

    async def start(self) -> None:
        self.proc = await asyncio.create_subprocess_exec("agent", stderr=asyncio.subprocess.PIPE)
        self.drain_task = asyncio.create_task(self.drain())

    async def drain(self) -> None:
        while self.proc and self.proc.stderr:
            line = await self.proc.stderr.readline()
            if not line:
                break
            self.heard += line

    async def kill(self) -> None:
        if self.proc:
            self.proc.terminate()
            await self.proc.wait()
            self.proc = None
        self.cancel_drain()

    def cancel_drain(self) -> None:
        if self.drain_task:
            self.drain_task.cancel()
            self.drain_task = None


class AsTheReportWouldFixIt(AsReported):
    """The consumer is cancelled before what it consumes is destroyed."""

    async def kill(self) -> None:
        self.cancel_drain()
        if self.proc:
            self.proc.terminate()
            await self.proc.wait()
            self.proc = None


async def told_to_end(make: Callable[[], AsReported]) -> None:
    script()
    agent = make()
    await agent.start()
    await asyncio.sleep(0.01)
    await agent.kill()
    assert agent.heard == LAST_WORDS, f"the last words are lost: {agent.heard!r}"


async def as_reported() -> None:
    await told_to_end(AsReported)


async def as_the_report_would_fix_it() -> None:
    await told_to_end(AsTheReportWouldFixIt)


async def as_it_should_be() -> None:
    """Signal, drain to EOF, join the drain, reap."""
    script()
    async with holdfast.Process("agent") as process:
        await asyncio.sleep(0.01)
        status = await process.close()
    assert process.stderr.head == LAST_WORDS
    assert status.code == 3
