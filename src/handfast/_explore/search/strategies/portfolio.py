"""The default: every schedule with one departure first, since most bugs need no more; then feedback
over PCT, POS and SURW, and every eighth turn the schedules with two departures.

No single strategy is best for all programs. Systematic search gives a guarantee but dwells on the
beginning of long runs; random sampling reaches deep schedules but repeats itself. The parts and
their shares are those that found most in `python -m benchmarks.compare search`.
"""

from __future__ import annotations

from handfast._explore.search.plan import Plan, Record
from handfast._explore.search.strategies.delay_bounded import Systematic
from handfast._explore.search.strategies.strategy import BATCH, Factory
from handfast._explore.search.strategies.trail_feedback import Feedback

# One turn in so many is the systematic search's, once each single departure has been tried.
_TURNS = 8


class Portfolio:
    """Systematic search and random samples, in turns."""

    def __init__(self, seed: int, schedules: int | None, cancels: int) -> None:
        self._search = Systematic(cancels, schedules)
        self._samples = Feedback(seed, schedules, cancels)
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
            plans = self._samples.batch()
        self._from_search = [searching] * len(plans)
        self._run += len(plans)
        return plans[:BATCH]

    def learn(self, record: Record) -> None:
        if self._from_search.pop():
            self._search.learn(record)
            # The samples need the plain run too, for its length and its cancel points.
            if record is self._search.plain:
                self._samples.learn(record)
        else:
            self._samples.learn(record)

    def _searches(self) -> bool:
        # All schedules with one departure come first, unless they would take more than their part.
        first_level = self._search.bound in (None, 0)
        if first_level and (self._alone is None or self._run < self._alone):
            return True
        if self._search.left <= BATCH:  # a level as small as this is worth finishing
            return True
        self._turn += 1
        return self._turn % _TURNS == 0


STRATEGIES: dict[str, Factory] = {"portfolio": Portfolio}
