"""Delay-bounded search, level by level: the plain order, then every schedule with one departure,
then with two (Emmi, Qadeer, Rakamaric: "Delay-bounded scheduling", POPL 2011).

Most concurrency bugs need one or two departures from a deterministic scheduler, and the number of
schedules with k departures grows only with the k-th power of the length of a run. When a level is
done, the search has a guarantee to give: every schedule up to that bound was run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from handfast._explore.search.plan import Plan, Record
from handfast._explore.search.strategies.branching import Branch, Branching
from handfast._explore.search.strategies.strategy import BATCH, MEMORY, Factory


class Systematic:
    """Every schedule up to a bound. `limit` is how many it may run in all, None: no limit."""

    def __init__(self, cancels: int, limit: int | None = None) -> None:
        # All schedules up to this many departures have been run; None: not even the plain one.
        self.bound: int | None = None
        self.complete = False
        self.plain: Record | None = None
        self._branching = Branching(cancels)
        # How many may still be run beside the plain one.
        self._free = MEMORY if limit is None else limit - 1
        # What is still to be run on this level, in reverse; what is being run; the next level.
        self._todo: list[Branch] = [(0, Plan(observe=True))]
        self._out: deque[Branch] = deque()
        self._next: list[Branch] = []
        self._looking = True
        # Whether branches of this level, and of the next, had to be dropped for lack of space.
        self._cut = False
        self._next_cut = False

    @property
    def left(self) -> int:
        """How many schedules there are still to run on this level, or on the next if it is done."""
        return len(self._todo) or len(self._next)

    def batch(self) -> list[Plan]:
        if not self._todo and not self._out:
            self._climb()
        take = self._todo[-BATCH:][::-1]
        del self._todo[-BATCH:]
        self._out.extend(take)
        return [plan for _, plan in take]

    def learn(self, record: Record) -> None:
        rank, _ = self._out.popleft()
        self.plain = self.plain or record
        if self._looking:
            self._next += self._branching.branches(record, rank)
            if len(self._next) > 4 * self._free:
                self._forget()
        if not self._todo and not self._out and not self._cut:
            self.bound = 0 if self.bound is None else self.bound + 1
            self.complete = self._looking and not self._next

    def _climb(self) -> None:
        """Begin the next level, and decide whether its runs are observed for one more."""
        self._forget()
        self._cut, self._next_cut = self._next_cut or self._cut, False
        branches, self._next = self._next, []
        # Observing costs time in each run, and pays only if the level after this one can be run.
        self._looking = self._looking and 2 * len(branches) <= self._free
        self._free = max(0, self._free - len(branches))
        self._todo = [(rank, replace(plan, observe=self._looking)) for rank, plan in branches]
        self._todo.reverse()

    def _forget(self) -> None:
        """Keep the branches with the lowest ranks; as many as can be run at all."""
        self._next.sort(key=_rank)  # stable: within a rank they stay in the order of time
        if len(self._next) > self._free:
            del self._next[self._free :]
            self._next_cut = True


def _rank(branch: Branch) -> int:
    return branch[0]


STRATEGIES: dict[str, Factory] = {
    "dfs": lambda seed, schedules, cancels: Systematic(cancels, schedules)
}
