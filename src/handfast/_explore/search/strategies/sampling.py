"""Random schedules: each has a seed of its own, from which its run makes all its choices.

Random walk, PCT, POS and SURW differ in the decider at the choice points (see `deciders`); the cancels
are drawn here, from the situations in which the plain run has seen its tasks.
"""

from __future__ import annotations

import random

from handfast._explore.search.deciders.priority import NO_PRIORITY
from handfast._explore.search.plan import Actor, Cancel, Plan, Record, Segment, Tail
from handfast._explore.search.strategies.strategy import BATCH, Factory


class Sampling:
    """A new schedule for each seed, without end; the tails take turns.

    Complete only for a program that has one schedule.
    """

    bound: int | None = None
    complete = False

    def __init__(self, tails: tuple[Tail, ...], seed: int, cancels: int) -> None:
        self._tails = tails
        self._seed = seed
        self._cancels = cancels
        self._given = 0
        self._segments: list[Segment] | None = None
        self._length = 0
        self._counts: tuple[tuple[Actor, int], ...] = ()

    def batch(self) -> list[Plan]:
        if self._segments is None:
            return [Plan(observe=True)]
        if self.complete:
            return []
        first = self._given
        self._given += BATCH
        return [self._plan(number) for number in range(first, first + BATCH)]

    def learn(self, record: Record) -> None:
        if self._segments is None:
            self.bound = 0
            self._segments = record.segments
            self._counts = record.counts
            self._length = sum(point.kind not in NO_PRIORITY for point in record.points)
            self.complete = not record.segments and not record.points

    def _plan(self, number: int) -> Plan:
        # A large prime apart, so that two seeds of the user do not share their schedules.
        seed = self._seed * 1_000_003 + number
        tail = self._tails[number % len(self._tails)]
        counts = self._counts if tail == "surw" else ()
        # A generator takes a tenth of the time of a short run.
        may_cancel = self._segments and self._cancels
        cancels = self.draw_cancels(random.Random(seed)) if may_cancel else ()
        return Plan((), cancels, tail, seed, length=self._length, counts=counts)

    def draw_cancels(self, draw: random.Random) -> tuple[Cancel, ...]:
        """A random task at a random instant of one of its situations; now and then none."""
        if not self._segments or not self._cancels or draw.random() < 0.1:
            return ()
        segment = draw.choice(self._segments)
        first = Cancel(draw.randint(segment.first, segment.last), segment.task)
        if self._cancels < 2:
            return (first,)
        # A second one falls mostly into the clean-up, soon after the first.
        gap = 1 + int(draw.expovariate(0.25))
        return (first, Cancel(first.instant + gap, segment.task))


def sampling(tail: Tail) -> Factory:
    return lambda seed, schedules, cancels: Sampling((tail,), seed, cancels)


STRATEGIES: dict[str, Factory] = {
    "random": sampling("random"),
    "pct": sampling("pct"),
    "pos": sampling("pos"),
}
