"""Feedback: a schedule that did something new is kept, and changed copies of it are run (Li, Desai,
Padhye: "Feedback-guided adaptive testing of distributed systems designs", NSDI 2026).

A bug behind several unlikely steps is drawn with the product of their probabilities. If the first
step alone can be seen in the trail of a run (see `trail`), the search continues from there, and
needs about their sum. Some schedules always come from a plain sampler, because a bug may show
nothing beforehand.
"""

from __future__ import annotations

import random
from dataclasses import replace

from handfast._explore.search.plan import Plan, Record
from handfast._explore.search.strategies.sampling import Sampling
from handfast._explore.search.strategies.strategy import BATCH, Factory

# The share of schedules from the plain sampler.
_FRESH = 0.4
# How many copies of a new schedule are run before those kept earlier have their turn again.
_COPIES = 32
# How often a copy keeps the cancels of the schedule.
_SAME_CANCELS = 0.7


class Feedback:
    """Samples, and changed copies of those that did something new."""

    def __init__(self, seed: int, schedules: int | None, cancels: int) -> None:
        self._samples = Sampling(("pct", "surw", "pos", "surw"), seed, cancels)
        self._fresh: list[Plan] = []
        self._draw = random.Random(seed)
        self._seen: set[int] = set()
        # The schedules that are kept, and whose turn it is, the next at the end.
        self._kept: list[Plan] = []
        self._turns: list[Plan] = []
        self._plain: Record | None = None

    @property
    def bound(self) -> int | None:
        return self._samples.bound

    @property
    def complete(self) -> bool:
        return self._samples.complete

    def batch(self) -> list[Plan]:
        if self._plain is None or self.complete:
            return self._samples.batch()
        return [self._next() for _ in range(BATCH)]

    def learn(self, record: Record) -> None:
        if self._plain is None:
            self._plain = record
            self._samples.learn(record)
        new = record.trail - self._seen
        if new:
            self._seen |= new
            # What it did, so that a copy does the same up to where it is changed.
            kept = replace(record.settled, tail="mutate", length=len(record.taken), trail=True)
            self._kept.append(kept)
            self._turns += [kept] * _COPIES

    def _next(self) -> Plan:
        if not self._kept or self._draw.random() < _FRESH:
            self._fresh = self._fresh or self._samples.batch()[::-1]
            return replace(self._fresh.pop(), trail=True)
        plan = self._turns.pop() if self._turns else self._draw.choice(self._kept)
        cancels = plan.cancels
        if self._draw.random() >= _SAME_CANCELS:
            cancels = self._samples.draw_cancels(self._draw)
        return replace(plan, seed=self._draw.getrandbits(48), cancels=cancels)


STRATEGIES: dict[str, Factory] = {"feedback": Feedback}
