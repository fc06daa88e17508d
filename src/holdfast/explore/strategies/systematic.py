"""Delay-bounded depth-first search, level by level: the plain order, then every schedule with one
departure, then with two. When a level is done it can say so: all schedules up to that bound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from holdfast.explore.plan import Plan, Record
from holdfast.explore.strategies.branching import Branch, Branching
from holdfast.explore.strategies.strategy import BATCH

__all__ = ["Systematic"]


# Without a bound on the schedules, no more than this many are kept in mind for the next level.
_MEMORY = 200_000


class Systematic:
    """Every schedule up to a bound. `room` is how many it may run in all, None without end."""

    def __init__(self, cancels: int, room: int | None = None) -> None:
        # All schedules up to this many departures have been run; None: not even the plain one.
        self.bound: int | None = None
        self.complete = False
        self.plain: Record | None = None
        self._branching = Branching(cancels)
        # How many may still be run beside the plain one.
        self._room = _MEMORY if room is None else room - 1
        # What is to be run on this level, the next one last; what is being run; the next level.
        self._todo: list[Branch] = [(0, Plan(observe=True))]
        self._out: deque[Branch] = deque()
        self._next: list[Branch] = []
        self._looking = True
        # Whether something of this level, and of the next, had to be left out.
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
            if len(self._next) > 4 * self._room:
                self._forget()
        if not self._todo and not self._out and not self._cut:
            self.bound = 0 if self.bound is None else self.bound + 1
            self.complete = self._looking and not self._next

    def _climb(self) -> None:
        """Go one level up, and decide whether to look further from there."""
        self._forget()
        self._cut, self._next_cut = self._next_cut or self._cut, False
        branches, self._next = self._next, []
        # Looking on costs time in each run, and pays only if there is room for the next level.
        self._looking = self._looking and 2 * len(branches) <= self._room
        self._room = max(0, self._room - len(branches))
        self._todo = [(rank, replace(plan, observe=self._looking)) for rank, plan in branches]
        self._todo.reverse()

    def _forget(self) -> None:
        """Keep the most telling ones; as many as can be run at all."""
        self._next.sort(key=_rank)  # stable: within a rank they stay in the order of time
        if len(self._next) > self._room:
            del self._next[self._room :]
            self._next_cut = True


def _rank(branch: Branch) -> int:
    return branch[0]
