"""Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized
scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).

Whoever has the highest priority goes first, always; priorities are drawn once. At d - 1 points,
drawn beforehand, whoever would go falls below all others. A bug that d orderings make certain is
met with probability 1 / (n * k ** (d - 1)) at least, for n actors and k points.
"""

from __future__ import annotations

import random
from collections.abc import Hashable

from holdfast.explore.deciders.contest import NO_CONTEST, contenders
from holdfast.explore.deciders.following import Actors
from holdfast.explore.deciders.random_walk import mostly_plain

__all__ = ["Pct"]

# Few published bugs need more orderings than these.
_DEPTHS = (2, 3, 4)
# How many points a run has, if nobody knows.
_LENGTH = 50


class Pct:
    """`length` is how many choice points the plain run has met; `depth` is d, by lot if None."""

    def __init__(self, seed: int, length: int = 0, depth: int | None = None) -> None:
        lot = random.Random(seed)
        self._lot = lot.random
        self.depth = lot.choice(_DEPTHS) if depth is None else depth
        points = range(length or _LENGTH)
        self._drops = frozenset(lot.sample(points, min(self.depth - 1, len(points))))
        self._priorities: dict[Hashable, float] = {}
        self._point = -1
        self._lowest = 0.0

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        if kind in NO_CONTEST:
            return mostly_plain(self._lot(), options)
        self._point += 1
        who = list(contenders(actors()))
        answer = self._highest(who)
        if self._point in self._drops:
            self._lowest -= 1.0
            self._priorities[who[answer]] = self._lowest
            answer = self._highest(who)
        return answer

    def _highest(self, who: list[Hashable]) -> int:
        priorities = self._priorities
        for contender in who:
            if contender not in priorities:
                priorities[contender] = self._lot()
        return max(range(len(who)), key=lambda n: priorities[who[n]])
