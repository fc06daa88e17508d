"""Work in small pieces: the agent's thread gives the interpreter up between them.

While a thread runs Python code, others wait for it up to the switch interval, 5 ms, each time that
they come back from a system call: a loop under load would hardly run.
"""

from __future__ import annotations

import time

_PIECE = 0.001
_GAP = 0.001
_CHECK_EVERY = 16


class Pace:
    """Call it often: it sleeps whenever a piece of work has taken its time."""

    __slots__ = ("_calls", "_gap", "_until")

    def __init__(self, gap: float = _GAP) -> None:
        self._gap = gap
        self._calls = 0
        self._until = time.perf_counter() + _PIECE

    def __call__(self) -> None:
        self._calls += 1
        if self._calls % _CHECK_EVERY == 0 and time.perf_counter() > self._until:
            time.sleep(self._gap)
            self._until = time.perf_counter() + _PIECE


def no_pause() -> None:
    """For a caller that is itself the thread of a loop: a sleep would only hold it up longer."""
