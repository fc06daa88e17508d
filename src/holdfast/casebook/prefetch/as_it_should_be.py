"""As it should be: a scope owns the session and all that uses it, and a channel is fetched once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import holdfast
from holdfast.casebook.prefetch.outside import Connect, Rows, Session, Sheet

__all__ = ["Automator", "main"]


class Automator:
    """Copies channels into a sheet, and fetches meanwhile what comes next."""

    def __init__(self, connect: Connect, sheet: Sheet, scope: holdfast.Scope) -> None:
        self._connect = connect
        self._sheet = sheet
        self._scope = scope
        self._fetches = holdfast.Slots(scope)
        self.cache: dict[str, Rows] = {}
        self._session: Session = scope.submit(self._open).result()

    async def _open(self) -> Session:
        return await self._scope.hold(self._connect(), name="session")

    def process(self, channel: str, upcoming: Sequence[str] = ()) -> int:
        """Copy one channel; how many rows were written."""
        return self._scope.submit(self._process, channel, upcoming).result()

    async def _process(self, channel: str, upcoming: Sequence[str]) -> int:
        rows = await self._rows(channel)
        self._prefetch(upcoming)
        return await holdfast.shielded(asyncio.to_thread(self._sheet.append, rows))

    async def _rows(self, channel: str) -> Rows:
        if channel not in self.cache:
            await self._fetches.keep(channel, self._fetch, channel)
        return self.cache[channel]

    def _prefetch(self, upcoming: Sequence[str]) -> None:
        for channel in upcoming:
            if channel not in self.cache and channel not in self._fetches:
                self._fetches.reject(channel, self._fetch, channel)

    async def _fetch(self, channel: str) -> None:
        self.cache[channel] = await self._session.rows(channel)

    async def close(self) -> holdfast.CloseReport:
        """For who is on the loop: all is over, or named, when this returns."""
        return await self._scope.close()

    def cleanup(self, timeout: float = 10) -> holdfast.CloseReport:
        """The same for any other thread, within the time-out."""
        return self._scope.close_from_thread(timeout=timeout)


def main(connect: Connect, sheet: Sheet, channels: Sequence[str], wanted: int) -> int:
    """A program that is not async: copies the channels until it has as many rows as are wanted."""
    with holdfast.BackgroundLoop("automator") as background:
        automator = Automator(connect, sheet, background.scope)
        written = 0
        while written < wanted:
            channel, *channels = channels
            written += automator.process(channel, upcoming=channels)
        return written
