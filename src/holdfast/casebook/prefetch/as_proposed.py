"""As the report would fix it: prefetches in a bundle, the bundle in a set, the set cancelled."""

# The report's lines as they are: it prints, and a type checker sees what is wrong with them.
# ruff: noqa: T201
# mypy: disable-error-code="arg-type, var-annotated"
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from holdfast.casebook.prefetch.outside import Connect, Rows, Session, Sheet

__all__ = ["Automator", "main"]


class Automator:
    """Copies channels into a sheet, and fetches meanwhile what comes next."""

    def __init__(self, connect: Connect, sheet: Sheet, loop: asyncio.AbstractEventLoop) -> None:
        self.connect = connect
        self.sheet = sheet
        self.loop = loop
        self.thread_pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sheet")
        self.session: Session | None = None
        self.cache: dict[str, Rows] = {}
        # Background task tracking for proper cleanup
        self.background_tasks: set[asyncio.Future[Any]] = set()

    def process(self, channel: str, upcoming: Sequence[str] = ()) -> int:
        """Copy one channel; how many rows were written."""
        work = self._process(channel, upcoming)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _process(self, channel: str, upcoming: Sequence[str]) -> int:
        rows = await self._rows(channel)
        self._prefetch(upcoming)
        return await self.loop.run_in_executor(self.thread_pool, self.sheet.append, rows)

    async def _rows(self, channel: str) -> Rows:
        if channel not in self.cache:
            if self.session is None:
                self.session = self.connect()
            self.cache[channel] = await self.session.rows(channel)
        return self.cache[channel]

    def _prefetch(self, upcoming: Sequence[str]) -> None:
        prefetch_tasks = [self._rows(channel) for channel in upcoming]
        # Create background task and track for cleanup
        task = asyncio.create_task(asyncio.gather(*prefetch_tasks, return_exceptions=True))
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)

    def cleanup(self) -> None:
        """The program ends."""
        # Cancel all background tasks
        try:
            if hasattr(self, "background_tasks") and self.background_tasks:
                print("[CLEANUP] Cancelling background tasks...")
                for task in self.background_tasks:
                    if not task.done():
                        task.cancel()
                print(f"[CLEANUP] Cancelled {len(self.background_tasks)} background tasks")
        except Exception as e:
            print(f"[CLEANUP] Error cancelling background tasks: {e}")
        self.thread_pool.shutdown(wait=True)


def main(connect: Connect, sheet: Sheet, channels: Sequence[str], wanted: int) -> int:
    """A program that is not async: copies the channels until it has as many rows as are wanted."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="automator")
    thread.start()
    automator = Automator(connect, sheet, loop)
    written = 0
    try:
        while written < wanted:
            channel, *channels = channels
            written += automator.process(channel, upcoming=channels)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        automator.cleanup()
    return written
