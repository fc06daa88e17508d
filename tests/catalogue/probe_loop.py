"""An event loop with a clock of its own, which says when a program stands still.

Time moves only when nothing is ready, straight to the next timer, so no probe ever sleeps. With
`outside=True` threads and child processes have a part in it: the clock is the real one then, and
the loop waits for their events.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Livelocked", "ProbeLoop", "Stuck"]

# Polls without a rest after which nobody would still call it progress.
RESTLESS = 5_000
# Only a broken test ever waits so many seconds for a thread or a child.
PATIENCE = 60.0


class Stuck(Exception):
    """Nothing is ready, no timer is set, and nothing from outside can come."""


class Livelocked(Exception):
    """The loop has been polled again and again and the clock has not moved."""


class _Clockwork(selectors.DefaultSelector):
    """Answers a poll by moving the clock instead of waiting."""

    def __init__(self, *, outside: bool) -> None:
        super().__init__()
        self.now = 0.0
        self.idle_hook: Callable[[], None] = lambda: None
        self._outside = outside
        self._polls = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return self._restless(events)
        self._polls = 0
        self.idle_hook()
        if self._outside:
            return self._patient(timeout)
        if timeout is None:
            raise Stuck
        self.now += timeout
        return events

    def _restless(
        self, events: list[tuple[selectors.SelectorKey, int]]
    ) -> list[tuple[selectors.SelectorKey, int]]:
        self._polls += 1
        if self._polls > RESTLESS and not self._outside:
            self._polls = 0
            raise Livelocked
        return events

    def _patient(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(PATIENCE if timeout is None else timeout)
        if not events and timeout is None:
            raise Stuck
        return events


class ProbeLoop(asyncio.SelectorEventLoop):
    """A real selector loop that counts how often it was woken and keeps what it has to say."""

    def __init__(self, *, outside: bool = False) -> None:
        self._clockwork = _Clockwork(outside=outside)
        self._outside = outside
        super().__init__(self._clockwork)
        self.complaints: list[str] = []
        self.wakeups = 0
        self.set_exception_handler(self._complain)

    def time(self) -> float:
        return time.monotonic() if self._outside else self._clockwork.now

    def on_idle(self, hook: Callable[[], None]) -> None:
        """Call the hook each time the loop has nothing to do."""
        self._clockwork.idle_hook = hook

    def _write_to_self(self) -> None:
        self.wakeups += 1
        super()._write_to_self()  # type: ignore[misc]

    def _complain(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.complaints.append(f"{context['message']} {error!r}" if error else context["message"])
