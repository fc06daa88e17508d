"""Schedules by lot: each has a seed of its own, from which its run makes all its choices.

Random walk, PCT and POS differ in who answers at the choice points (see `deciders`); the cancels
are drawn here, from the situations in which the plain run has seen its tasks.
"""

from __future__ import annotations

import random

from holdfast.explore.deciders.contest import NO_CONTEST
from holdfast.explore.plan import Cancel, Plan, Record, Segment, Tail
from holdfast.explore.strategies.strategy import BATCH

__all__ = ["Sampling"]


class Sampling:
    """Without end: a new schedule for each seed, the tails taking turns. Only a program that has one
    schedule is done with it."""

    bound: int | None = None
    complete = False

    def __init__(self, tails: tuple[Tail, ...], seed: int, cancels: int) -> None:
        self._tails = tails
        self._seed = seed
        self._cancels = cancels
        self._given = 0
        self._segments: list[Segment] | None = None
        self._length = 0

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
            self._length = sum(point.kind not in NO_CONTEST for point in record.points)
            self.complete = not record.segments and not record.points

    def _plan(self, number: int) -> Plan:
        seed = self._seed * 1_000_003 + number
        tail = self._tails[number % len(self._tails)]
        return Plan((), self._lots(random.Random(seed)), tail, seed, length=self._length)

    def _lots(self, lot: random.Random) -> tuple[Cancel, ...]:
        """Cancel whoever the lot says, in a situation of its own; now and then nobody."""
        if not self._segments or not self._cancels or lot.random() < 0.1:
            return ()
        segment = lot.choice(self._segments)
        first = Cancel(lot.randint(segment.first, segment.last), segment.task)
        if self._cancels < 2:
            return (first,)
        # A second one falls mostly into the clean-up, soon after the first.
        gap = 1 + int(lot.expovariate(0.25))
        return (first, Cancel(first.instant + gap, segment.task))
