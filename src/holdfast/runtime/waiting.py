"""Those who wait for a slot: until something has gone, and in which order they come.

Nothing here knows of tasks. Whoever waits is woken where the bookkeeping happens, not by a done
callback: a callback would be taken for somebody who looks at the task's error, and then
on_failure="report" would leave it to him.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Hashable, MutableMapping
from contextlib import suppress

__all__ = ["Line", "Onlookers"]


class Onlookers:
    """Each waits for some thing to go, and is woken when it has."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # The inner ones are dicts for their order.
        self._waiting: dict[object, dict[Future[None], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def watch(self, thing: object, timeout: float | None = None) -> None:
        """Wait until `thing` has gone, or for so many seconds. It is there when this is called."""
        loop = asyncio.get_running_loop()
        gone: Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(thing, {})
        waiting[gone] = None
        timer = None if timeout is None else loop.call_later(max(timeout, 0), _settle, gone)
        try:
            await gone
        finally:
            if timer is not None:
                timer.cancel()
            waiting.pop(gone, None)
            if not waiting:
                self._waiting.pop(thing, None)

    def wake(self, thing: object) -> None:
        """`thing` has gone."""
        for gone in self._waiting.pop(thing, ()):
            with suppress(RuntimeError):  # the loop is closed, and they will never run again
                _settle(gone)


class Line:
    """First come, first served: `async with` gives the turn. The line is there as long as
    somebody stands in it."""

    __slots__ = ("_key", "_length", "_lines", "_onlookers", "_turn")

    def __init__(
        self, lines: MutableMapping[Hashable, Line], key: Hashable, onlookers: Onlookers
    ) -> None:
        self._lines = lines
        self._key = key
        self._onlookers = onlookers
        self._length = 0
        self._turn = asyncio.Lock()
        lines[key] = self

    async def __aenter__(self) -> None:
        self._length += 1
        try:
            await self._turn.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._turn.release()
        self._leave()

    def _leave(self) -> None:
        self._length -= 1
        if not self._length:
            self._lines.pop(self._key, None)
            self._onlookers.wake(self)


def _settle(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)
