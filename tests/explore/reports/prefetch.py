"""An automator prefetches rows in the background and is closed while that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import holdfast


class Session:
    """What the prefetching uses; closed last."""

    def __init__(self) -> None:
        self.open = True
        self.fetched: list[int] = []

    async def fetch(self, row: int) -> None:
        await asyncio.sleep(0.01 * (row + 1))
        assert self.open, f"row {row} was fetched from a session that is closed"
        self.fetched.append(row)


class AsReported:
    """Background tasks that nobody tracks."""

    def __init__(self) -> None:
        self.session = Session()
        self.started: list[asyncio.Task[None]] = []

    def prefetch(self, rows: int) -> None:
        for row in range(rows):
            # Held here only so that the collector does not decide the matter.
            self.started.append(asyncio.create_task(self.session.fetch(row)))

    async def close(self) -> None:
        self.session.open = False


class AsTheReportWouldFixIt(AsReported):
    """A bundle of tasks, cancelled and not joined. (As printed, `create_task(gather())` raises.)"""

    def prefetch(self, rows: int) -> None:
        bundle: Any = asyncio.gather(*map(self.session.fetch, range(rows)))
        self.started.append(asyncio.create_task(bundle))

    async def close(self) -> None:
        for task in self.started:
            if not task.done():
                task.cancel()
        self.session.open = False


class AsItShouldBe:
    """A scope that is joined before the session is closed."""

    def __init__(self) -> None:
        self.session = Session()
        self.scope = holdfast.Scope("prefetch", on_failure="report")

    def prefetch(self, rows: int) -> None:
        for row in range(rows):
            self.scope.spawn(self.session.fetch(row))

    async def close(self) -> None:
        await self.scope.close(grace=0.0)
        self.session.open = False


Automator = AsReported | AsItShouldBe


async def closed_while_fetching(make: Callable[[], Automator]) -> None:
    automator = make()
    try:
        automator.prefetch(3)
        await asyncio.sleep(0.015)
    finally:
        await automator.close()
    await asyncio.sleep(0.1)


async def as_reported() -> None:
    await closed_while_fetching(AsReported)


async def as_the_report_would_fix_it() -> None:
    await closed_while_fetching(AsTheReportWouldFixIt)


async def as_it_should_be() -> None:
    await closed_while_fetching(AsItShouldBe)
