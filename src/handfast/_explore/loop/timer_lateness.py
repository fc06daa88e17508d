"""Lateness that shows only afterwards: a timer that was set late, and therefore fires after one
that was set long after it.

Whether code was slow before a timer was set matters only once another timer is close to it. So the
choice is made then, about the period in which the timer was set, and only if nothing has shown in
the meantime how late it was. No schedule is spent on lateness that changes nothing.
"""

from __future__ import annotations

from typing import Any

_FOREVER = float("inf")


class QuietPeriod:
    """The time between two movements of the clock.

    All code in it runs at one virtual time. On a real machine it takes a while: up to `slack()`
    without any effect outside the period.
    """

    __slots__ = ("_cap", "_waited", "known_on_time", "number", "started")

    def __init__(self, number: int) -> None:
        self.number = number
        # The deadlines of `asyncio.timeout()`s made here: a delay from now, given as a time.
        self.started: tuple[float, ...] = ()
        # Timers up to this one (in the order of calls) are known not to have been set late.
        self.known_on_time = 0
        self._waited = 0.0
        self._cap = _FOREVER

    def slack(self) -> float:
        return min(self._waited, self._cap)

    def ended(self, *, waited: float) -> None:
        """The loop then had nothing to do for this many seconds."""
        self._waited = waited

    def cap_lateness(self, seconds: float) -> None:
        """If it had been later than this, something else would have happened."""
        self._cap = min(self._cap, seconds)

    def left(self) -> tuple[Any, ...]:
        """What matters for timers that are still to be set in it."""
        return round(self._cap, 9), self.started

    def spend(self, seconds: float) -> None:
        self._waited -= seconds
        self._cap -= seconds
