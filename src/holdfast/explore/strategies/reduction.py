"""Partial-order reduction: orders of events that lead to one state are explored once.

Two events are independent here only if it was seen: both orders have been run, and ended in the
same state (see `states`), from where everything that can follow is the same. So nothing is lost,
and what cannot be looked into is explored in full.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from holdfast.explore.plan import Plan, Record
from holdfast.explore.strategies.branching import Branching, first_new
from holdfast.explore.strategies.strategy import BATCH

__all__ = ["Reduction"]

# Without a bound on the schedules, no more than this many are kept in mind.
_MEMORY = 200_000


class Reduction:
    """Every state once, the schedules with few departures first. `room` is how many schedules it may
    run in all, None without end."""

    def __init__(self, cancels: int, room: int | None = None) -> None:
        # The levels of the search are not bounds: what is equal to something earlier is left out.
        self.bound: int | None = None
        self.complete = False
        self._branching = Branching(cancels)
        self._room = _MEMORY if room is None else room
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
            if len(self._todo) < self._room:
                self._todo.append(replace(plan, observe=True, states=True))
            else:
                self._cut = True
        self.complete = not (self._todo or self._out or self._cut)

    def _known_from(self, record: Record) -> int | None:
        """The first choice point of this run at which it is where another has been before."""
        struck = tuple(cancel.task for cancel in record.plan.cancels)
        for ordinal in range(first_new(record), len(record.points)):
            state = record.states[ordinal]
            if state is not None:
                if (state, *struck) in self._seen:
                    return ordinal
                self._seen.add((state, *struck))
        return None
