"""A program that copies one channel and ends, on the explored loop: nothing of it may go on.

The program is a thread, as it is in life. Its session and its sheet have twins that take some time:
a channel has its answer in 10 milliseconds, the sheet is written to in 20.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType
from typing import Protocol, Self, TypeVar

import holdfast
from holdfast.casebook.prefetch import as_it_should_be as should_be
from holdfast.casebook.prefetch import as_meant as meant
from holdfast.casebook.prefetch import as_proposed as proposed
from holdfast.casebook.prefetch import as_reported as reported
from holdfast.casebook.prefetch.outside import Connect, Rows, Sheet

__all__ = [
    "as_it_should_be",
    "as_meant",
    "as_proposed",
    "as_reported",
    "as_reported_asks_twice",
]

T = TypeVar("T")


class _Session:
    """Channels of one row each. It notes who asks, and who is still waiting."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.under_way: list[str] = []
        self.open = True

    async def rows(self, channel: str) -> Rows:
        self.asked.append(channel)
        self.under_way.append(channel)
        try:
            await asyncio.sleep(0.01)
            assert self.open, f"{channel} is being read, and the session is closed"
            return [channel]
        finally:
            self.under_way.remove(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open = False


class _Sheet:
    """It blocks the thread that writes to it, and keeps what is written."""

    def __init__(self) -> None:
        self.rows: Rows = []

    def append(self, rows: Rows) -> int:
        time.sleep(0.02)
        self.rows += rows
        return len(rows)


class _Automator(Protocol):
    def process(self, channel: str, upcoming: Sequence[str] = ()) -> int: ...
    def cleanup(self) -> object: ...


async def _copies_one(kind: Callable[[Connect, Sheet, T], _Automator], place: T) -> None:
    """The program copies one channel, fetches another meanwhile, and ends."""
    session, sheet = _Session(), _Sheet()

    def program() -> None:
        automator = kind(lambda: session, sheet, place)
        assert automator.process("news", upcoming=["sport"]) == 1
        automator.cleanup()
        assert not session.under_way, f"cleaned up, and {session.under_way} is still being fetched"

    await asyncio.to_thread(program)
    assert sheet.rows == ["news"]


async def _copies_two(kind: Callable[[Connect, Sheet, T], _Automator], place: T) -> list[str]:
    """The program copies a channel whose prefetch may be under way; what goes on after the end."""
    session, sheet = _Session(), _Sheet()

    def program() -> list[str]:
        automator = kind(lambda: session, sheet, place)
        automator.process("news", upcoming=["sport"])
        automator.process("sport", upcoming=["weather"])
        automator.cleanup()
        return session.under_way.copy()

    left = await asyncio.to_thread(program)
    assert session.asked.count("sport") == 1, f"asked for: {session.asked}"
    assert sheet.rows == ["news", "sport"]
    return left


async def as_reported() -> None:
    """The sheet is quicker than the fetch of what comes next."""
    await _copies_one(reported.Automator, asyncio.get_running_loop())


async def as_reported_asks_twice() -> None:
    """The same program, with another of its bugs: a channel is fetched a second time."""
    await _copies_two(reported.Automator, asyncio.get_running_loop())


async def as_proposed() -> None:
    """The first channel is enough."""
    await _copies_one(proposed.Automator, asyncio.get_running_loop())


async def as_meant() -> None:
    """As the report would fix it, had somebody run it once."""
    with redirect_stdout(StringIO()):
        await _copies_one(meant.Automator, asyncio.get_running_loop())


async def as_it_should_be() -> None:
    """Both at once: nothing is asked for twice, and nothing goes on."""
    async with holdfast.Scope("automator", on_failure="report") as scope:
        left = await _copies_two(should_be.Automator, scope)
        assert not left, f"cleaned up, and {left} is still being fetched"
