"""The default: every schedule with one departure first, since most bugs need no more; then random
walk, PCT and POS in turn, beside every schedule with two departures.
"""

from __future__ import annotations

from holdfast.explore.plan import Plan, Record
from holdfast.explore.strategies.sampling import Sampling
from holdfast.explore.strategies.strategy import BATCH
from holdfast.explore.strategies.systematic import Systematic

__all__ = ["Portfolio"]


class Portfolio:
    """Search by bound, and by lot, in turns."""

    def __init__(self, seed: int, schedules: int | None, cancels: int) -> None:
        self._search = Systematic(cancels, schedules)
        self._lots = Sampling(("random", "pct", "pos"), seed, cancels)
        # Of this many schedules the first level may take all but a quarter.
        self._alone = None if schedules is None else schedules * 3 // 4
        self._run = 0
        self._turn = 0
        self._from_search: list[bool] = []

    @property
    def bound(self) -> int | None:
        return self._search.bound

    @property
    def complete(self) -> bool:
        return self._search.complete

    def batch(self) -> list[Plan]:
        if self.complete:
            return []
        plans = self._search.batch() if self._searches() else []
        searching = bool(plans)
        if not searching:
            plans = self._lots.batch()
        self._from_search = [searching] * len(plans)
        self._run += len(plans)
        return plans[:BATCH]

    def learn(self, record: Record) -> None:
        if self._from_search.pop():
            self._search.learn(record)
            if record is self._search.plain:
                self._lots.learn(record)
        else:
            self._lots.learn(record)

    def _searches(self) -> bool:
        first_level = self._search.bound in (None, 0)
        if first_level and (self._alone is None or self._run < self._alone):
            return True
        if self._search.left <= BATCH:  # a level as small as this is worth finishing
            return True
        self._turn += 1
        return self._turn % 2 == 0
