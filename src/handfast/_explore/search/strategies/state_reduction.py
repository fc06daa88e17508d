"""Stateful search: a state of the program that was reached before is not explored again.

Two orders of independent events end in the same state (see `states`), and from there everything
that can follow is the same, so one of them is enough. This is not dynamic partial-order reduction,
which infers independence from the accesses of a single run: here both orders are run up to the
point where they meet. Nothing is lost, and a program whose state cannot be read is explored in full.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from handfast._explore.search.plan import Plan, Record
from handfast._explore.search.strategies.branching import Branching, first_new
from handfast._explore.search.strategies.strategy import BATCH, MEMORY, Factory


class Reduction:
    """Every state once, the schedules with few departures first.

    `limit` is how many schedules it may run in all, None: no limit.
    """

    def __init__(self, cancels: int, limit: int | None = None) -> None:
        # The levels of the search are not bounds: what is equal to something earlier is left out.
        self.bound: int | None = None
        self.complete = False
        self._branching = Branching(cancels)
        self._limit = MEMORY if limit is None else limit
        self._todo: deque[Plan] = deque([Plan(observe=True, states=True)])
        self._out = 0
        self._seen: set[tuple[int, ...]] = set()
        self._cut = False

    def batch(self) -> list[Plan]:
        plans = [self._todo.popleft() for _ in range(min(BATCH, len(self._todo)))]
        self._out += len(plans)
        return plans

    def learn(self, record: Record) -> None:
        self.bound = 0
        self._out -= 1
        for _, plan in self._branching.branches(record, 0, self._known_from(record)):
            if len(self._todo) < self._limit:
                self._todo.append(replace(plan, observe=True, states=True))
            else:
                self._cut = True
        self.complete = not (self._todo or self._out or self._cut)

    def _known_from(self, record: Record) -> int | None:
        """The first choice point of this run whose state another run has reached before."""
        # How a cancelled task ends is part of the verdict, so equal states with other cancels differ.
        cancelled = tuple(cancel.task for cancel in record.plan.cancels)
        # Before the last departure this run repeats another one, whose states are known already.
        for ordinal in range(first_new(record), len(record.points)):
            state = record.states[ordinal]
            if state is not None:
                if (state, *cancelled) in self._seen:
                    return ordinal
                self._seen.add((state, *cancelled))
        return None


STRATEGIES: dict[str, Factory] = {
    "states": lambda seed, schedules, cancels: Reduction(cancels, schedules)
}
