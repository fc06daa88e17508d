"""Fixed: a scope owns the session and everything that uses it; a channel is fetched once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import handfast
from examples.prefetch.interfaces import Connect, Rows, Session, Sheet

__all__ = ["Automator", "main"]


class Automator:
    """Copies channels into a sheet and prefetches the next ones meanwhile."""

    def __init__(self, connect: Connect, sheet: Sheet, scope: handfast.Scope) -> None:
        self._connect = connect
        self._sheet = sheet
        self._scope = scope
        self._fetches = handfast.KeyedTasks(scope)
        self.cache: dict[str, Rows] = {}
        self._session: Session = scope.submit(self._open).result()

    async def _open(self) -> Session:
        return await self._scope.hold(self._connect(), name="session")

    def process(self, channel: str, upcoming: Sequence[str] = ()) -> int:
        """Copy one channel and return the number of rows."""
        return self._scope.submit(self._process, channel, upcoming).result()

    async def _process(self, channel: str, upcoming: Sequence[str]) -> int:
        rows = await self._rows(channel)
        self._prefetch(upcoming)
        return await handfast.shielded(asyncio.to_thread(self._sheet.append, rows))

    async def _rows(self, channel: str) -> Rows:
        if channel not in self.cache:
            await self._fetches.share(channel, self._fetch, channel)
        return self.cache[channel]

    def _prefetch(self, upcoming: Sequence[str]) -> None:
        for channel in upcoming:
            if channel not in self.cache and channel not in self._fetches:
                self._fetches.start(channel, self._fetch, channel)

    async def _fetch(self, channel: str) -> None:
        self.cache[channel] = await self._session.rows(channel)

    async def close(self) -> handfast.types.CloseReport:
        """Close on the event loop; the report names what has not ended."""
        return await self._scope.close()

    def cleanup(self, timeout: float = 10) -> handfast.types.CloseReport:
        """Close from any other thread, within the timeout."""
        return self._scope.close_from_thread(timeout=timeout)


def main(connect: Connect, sheet: Sheet, channels: Sequence[str], wanted: int) -> int:
    """A synchronous program: copy channels until as many rows as `wanted` are written."""
    with handfast.BackgroundLoop("automator") as background:
        automator = Automator(connect, sheet, background.scope)
        written = 0
        while written < wanted:
            channel, *channels = channels
            written += automator.process(channel, upcoming=channels)
        return written
