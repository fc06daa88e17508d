"""Waiting for a key: until an entry is removed, and in which order callers get their turn.

This file does not know tasks. Waiters are woken where the entry is removed and not by a done
callback: with on_failure="report" a done callback counts as a caller who reads the error.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Hashable, MutableMapping
from contextlib import suppress


class Waiters:
    """Futures of callers that wait until some object is removed."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # The inner ones are dicts because a set has no order.
        self._waiting: dict[object, dict[Future[None], None]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def until_removed(self, target: object, timeout: float | None = None) -> None:
        """Wait until `target`, which is present now, is removed; for `timeout` seconds at most."""
        loop = asyncio.get_running_loop()
        removed: Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(target, {})
        waiting[removed] = None
        timer = None if timeout is None else loop.call_later(max(timeout, 0), _resolve, removed)
        try:
            await removed
        finally:
            if timer is not None:
                timer.cancel()
            waiting.pop(removed, None)
            if not waiting:
                self._waiting.pop(target, None)

    def wake(self, target: object) -> None:
        """Wake the waiters of `target`, which has been removed."""
        for removed in self._waiting.pop(target, ()):
            with suppress(RuntimeError):  # the loop is closed: they will never run again
                _resolve(removed)


class KeyQueue:
    """First come, first served: `async with` waits for the turn.

    It is in `queues` as long as a caller is in it.
    """

    __slots__ = ("_key", "_length", "_queues", "_turn", "_waiters")

    def __init__(
        self, queues: MutableMapping[Hashable, KeyQueue], key: Hashable, waiters: Waiters
    ) -> None:
        self._queues = queues
        self._key = key
        self._waiters = waiters
        self._length = 0
        self._turn = asyncio.Lock()
        queues[key] = self

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
            self._queues.pop(self._key, None)
            self._waiters.wake(self)


def _resolve(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)
