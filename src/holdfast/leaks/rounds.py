"""What was counted after each round, and what grows from one to the next.

`tally` counts once, `trend` decides; here they meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from holdfast.leaks.stress_report import Growth
from holdfast.leaks.tally import Look, Mine, Tally, grown_most, settled, tally
from holdfast.leaks.trend import ENOUGH, Sample, grows, slope

__all__ = ["Rounds"]

# Places that are named for each growth.
_PLACES = 3
# Seconds before the last count is taken once more.
_GRACE = 0.05


class Rounds:
    """The tallies of the rounds until now."""

    def __init__(self, checks: Collection[str], mine: Mine) -> None:
        self._checks = checks
        self._mine = mine
        self._tallies: list[Tally] = []
        self.growing: tuple[str, ...] = ()
        """The checks in which something grows."""

    @property
    def enough(self) -> bool:
        """Whether there were enough to tell a trend."""
        return len(self._tallies) >= 2 * ENOUGH

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What the last census could not see."""
        return self._tallies[-1].not_checked if self._tallies else ()

    async def count(self, runs: int) -> None:
        """After so many runs."""
        before = self._tallies[-1] if self._tallies else None
        self._tallies.append(await settled(self._look(runs), self._checks, before))
        self.growing = self._find()

    async def count_again(self) -> None:
        """What goes away now was late, and not left behind."""
        if self.growing:
            await asyncio.sleep(_GRACE)
            first, last = self._tallies[0], self._tallies.pop()
            self._tallies.append(await settled(self._look(last.runs), self._checks, first))
            self.growing = self._find()

    def _look(self, runs: int) -> Look:
        first = self._tallies[0] if self._tallies else None
        return lambda checks: tally(runs, checks, first, self._mine)

    def growth(self) -> tuple[Growth, ...]:
        """All that grows."""
        return tuple(map(self._growth, self.growing))

    def _find(self) -> tuple[str, ...]:
        return tuple(filter(self._grows, self._checks)) if self.enough else ()

    def _grows(self, check: str) -> bool:
        samples = self._series(check)
        (begin, first), (end, last) = samples[0], samples[-1]
        # Most of what the trend has added must still be there.
        return grows(samples) and last - first > slope(samples) * (end - begin) / 2

    def _series(self, check: str) -> tuple[Sample, ...]:
        return tuple((each.runs, each.count(check)) for each in self._tallies)

    def _growth(self, check: str) -> Growth:
        samples = self._series(check)
        first, last = self._tallies[0], self._tallies[-1]
        places = grown_most(first, last, check, _PLACES)
        counts = first.count(check), last.count(check)
        return Growth(check, slope(samples), *counts, samples, places)
