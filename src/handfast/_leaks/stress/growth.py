"""Count what is alive after each round, and find what grows.

Objects that are about to end get a moment, and the garbage collector runs, before anything is
counted. A count keeps numbers and lines, never the objects. `trend` decides what grows.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field

from handfast._census import DEFAULT, LiveObject, take
from handfast._census.kinds import memory
from handfast._leaks.judge import kept_by_no_library
from handfast._leaks.stress.report import Growth, GrowthSource
from handfast._origin import Origin
from handfast._trend import ENOUGH, Sample, grows, slope

_TURNS = 5
_PAUSE = 0.002
# If nothing has ended in so many pauses, it will not.
_STEADY = 3
_PAUSES = 100
# Seconds before the last count is repeated.
_GRACE = 0.05
# Lines that are named for each growth.
_LINES = 3

Source = tuple[str, Origin | str | None]
"""The catalogue code, and the line that created it; None if that was not recorded."""
Excluded = Callable[[LiveObject], bool]


@dataclass(slots=True)
class Count:
    """What was alive after a number of runs."""

    runs: int
    sources: dict[str, Counter[Source]] = field(default_factory=dict)
    keys: frozenset[Hashable] = frozenset()
    not_checked: tuple[str, ...] = ()

    def total(self, check: str) -> int:
        """How many objects of one kind."""
        return self.sources[check].total() if check in self.sources else 0

    def exceeds(self, before: Count | None) -> bool:
        """Whether there is more of any kind than before."""
        return before is None or any(self.total(c) > before.total(c) for c in self.sources)


class Rounds:
    """The counts of all rounds. Objects that are `excluded` are not counted."""

    def __init__(self, checks: Collection[str], excluded: Excluded) -> None:
        self._checks = checks
        self._excluded = excluded
        self._counts: list[Count] = []
        self.growing: tuple[str, ...] = ()
        """The kinds that grow."""

    @property
    def enough(self) -> bool:
        """Whether there were enough rounds to find a trend."""
        return len(self._counts) >= 2 * ENOUGH

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What the last snapshot could not list."""
        return self._counts[-1].not_checked if self._counts else ()

    async def count(self, runs: int) -> None:
        """Count after a round, when there have been so many runs."""
        before = self._counts[-1] if self._counts else None
        self._counts.append(await self._settled(runs, before))
        self.growing = self._find()

    async def count_again(self) -> None:
        """Repeat the last count: what is gone by now was late, and did not leak."""
        if self.growing:
            await asyncio.sleep(_GRACE)
            last = self._counts.pop()
            self._counts.append(await self._settled(last.runs, self._counts[0]))
            self.growing = self._find()

    def growth(self) -> tuple[Growth, ...]:
        """Everything that grows."""
        return tuple(map(self._growth, self.growing))

    # --- the trend -------------------------------------------------------------------------------

    def _find(self) -> tuple[str, ...]:
        return tuple(filter(self._grows, self._checks)) if self.enough else ()

    def _grows(self, check: str) -> bool:
        samples = self._samples(check)
        (begin, first), (end, last) = samples[0], samples[-1]
        # Most of what the trend has added must still be there.
        return grows(samples) and last - first > slope(samples) * (end - begin) / 2

    def _samples(self, check: str) -> tuple[Sample, ...]:
        return tuple((each.runs, each.total(check)) for each in self._counts)

    def _growth(self, check: str) -> Growth:
        samples = self._samples(check)
        first, last = self._counts[0], self._counts[-1]
        added = last.sources[check] - first.sources[check]
        sources = tuple(
            GrowthSource(code, str(line or ""), count)
            for (code, line), count in added.most_common(_LINES)
        )
        totals = first.total(check), last.total(check)
        return Growth(check, slope(samples), *totals, samples, sources)

    # --- one count -------------------------------------------------------------------------------

    async def _settled(self, runs: int, before: Count | None) -> Count:
        """A count. If there is more of any kind than before, what is about to end gets a moment, as
        long as there is less in each count."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        gc.collect(1)  # a full collection takes longer than a round, and finds little more
        counted = self._count(runs, self._checks)
        if not counted.exceeds(before):
            return counted
        gc.collect()
        await self._wait_until_steady(runs, before)
        return self._count(runs, self._checks)

    async def _wait_until_steady(self, runs: int, before: Count | None) -> None:
        quick = [check for check in DEFAULT if check in self._checks]
        counted, steady = self._count(runs, quick), 0
        for _ in range(_PAUSES):
            if steady == _STEADY or not counted.exceeds(before):
                break
            await asyncio.sleep(_PAUSE)
            again = self._count(runs, quick)
            steady = steady + 1 if not counted.exceeds(again) else 0
            counted = again

    def _count(self, runs: int, checks: Collection[str]) -> Count:
        """Count everything once, also what is about to end: it is gone in the next round.

        Not a part of an object that is new since the first count, since that object is counted. A
        part of an older object may itself be what grows.
        """
        snapshot = take([check for check in checks if check != "memory"])
        sources: dict[str, Counter[Source]] = {check: Counter() for check in checks}
        new = snapshot.keys - self._counts[0].keys if self._counts else frozenset()
        for live in kept_by_no_library(snapshot.objects):
            if not (live.part_of() in new or self._excluded(live)):
                origin = live.creation.origin if live.creation is not None else None
                sources[live.check][live.code, origin] += live.size
        if "memory" in checks:
            for (filename, lineno), size in memory.sizes().items():
                sources["memory"]["HF761", f"{filename}:{lineno}"] = size
        return Count(runs, sources, snapshot.keys, snapshot.not_checked)
