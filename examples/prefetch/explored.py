"""Programs for `explore`: copy channels, then end; no fetch may run after the end.

The program runs in a thread, as in reality. Its session and its sheet are simulated: reading a
channel takes 10 milliseconds, writing to the sheet 20.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType
from typing import Protocol, Self, TypeVar

import handfast
from examples.prefetch import as_meant as meant
from examples.prefetch import as_proposed as proposed
from examples.prefetch import as_reported as reported
from examples.prefetch import fixed as fixed_version
from examples.prefetch.interfaces import Connect, Rows, Sheet

__all__ = [
    "SimulatedSession",
    "SimulatedSheet",
    "as_meant",
    "as_proposed",
    "as_reported",
    "as_reported_fetches_twice",
    "fixed",
]

T = TypeVar("T")


class SimulatedSession:
    """Channels of one row each. Records the requests and what is pending."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.pending: list[str] = []
        self.log: list[str] = []
        """What ended, in this order."""
        self.open = True

    async def rows(self, channel: str) -> Rows:
        self.requested.append(channel)
        self.pending.append(channel)
        try:
            await self._answer(channel)
            assert self.open, f"{channel} is being read from a closed session"
            return [channel]
        finally:
            self.pending.remove(channel)
            self.log.append(f"{channel} ended")

    async def _answer(self, channel: str) -> None:
        await asyncio.sleep(0.01)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open = False
        self.log.append("session closed")


class SimulatedSheet:
    """Blocks the thread that writes, and keeps the rows."""

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
    """Copy one channel, prefetch another meanwhile, and end."""
    session, sheet = SimulatedSession(), SimulatedSheet()

    def program() -> None:
        automator = kind(lambda: session, sheet, place)
        assert automator.process("news", upcoming=["sport"]) == 1
        automator.cleanup()
        assert not session.pending, (
            f"the clean-up is done, and {session.pending} is still being fetched"
        )

    await asyncio.to_thread(program)
    assert sheet.rows == ["news"]


async def _copies_two(kind: Callable[[Connect, Sheet, T], _Automator], place: T) -> list[str]:
    """Copy a channel whose prefetch may be running; return what is pending after the end."""
    session, sheet = SimulatedSession(), SimulatedSheet()

    def program() -> list[str]:
        automator = kind(lambda: session, sheet, place)
        automator.process("news", upcoming=["sport"])
        automator.process("sport", upcoming=["weather"])
        automator.cleanup()
        return session.pending.copy()

    left = await asyncio.to_thread(program)
    assert session.requested.count("sport") == 1, f"requested: {session.requested}"
    assert sheet.rows == ["news", "sport"]
    return left


async def as_reported() -> None:
    """The sheet may be faster than the prefetch."""
    await _copies_one(reported.Automator, asyncio.get_running_loop())


async def as_reported_fetches_twice() -> None:
    """Another bug of the same version: a channel is fetched a second time."""
    await _copies_two(reported.Automator, asyncio.get_running_loop())


async def as_proposed() -> None:
    """The first channel already fails."""
    await _copies_one(proposed.Automator, asyncio.get_running_loop())


async def as_meant() -> None:
    """The report's fix without its `TypeError`."""
    with redirect_stdout(StringIO()):
        await _copies_one(meant.Automator, asyncio.get_running_loop())


async def fixed() -> None:
    """No channel is fetched twice, and no fetch runs after the end."""
    async with handfast.Scope("automator", on_failure="report") as scope:
        left = await _copies_two(fixed_version.Automator, scope)
        assert not left, f"the clean-up is done, and {left} is still being fetched"
