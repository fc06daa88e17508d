"""Random priorities: the actor with the highest one goes first.

**PCT**, probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A
randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010). Priorities are
drawn once. At d - 1 points, drawn beforehand, the actor that would go first falls below all others.
A bug that d orderings make certain is met with probability 1 / (n * k ** (d - 1)) at least, for n
actors and k points. Here d is drawn for each run, since the depth of a bug is not known
beforehand, and k is the length of the plain run.

**POS**, partial order sampling (Yuan, Yang, Gu: "Partial order aware concurrency sampling", CAV
2018). Each pending event has a random priority; the highest goes first, and its actor draws a new
one for its next event. A pending event that races with the one that went draws again, too. The paper
knows which events race; here that is not known before they have run, so it is drawn as well.

How late the loop is, and how many timers fire together, is not a question of who goes first: there
the plain answer is as likely as all others together, so that a run does not spend all its lateness
at once.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence

from handfast._explore.search.deciders.follow import Actors
from handfast._explore.search.deciders.random_walk import mostly_plain

NO_PRIORITY = frozenset({"timers", "late"})
# Few published bugs need more orderings than these.
_DEPTHS = (2, 3, 4)
# How many points a run has, if that is unknown.
_LENGTH = 50
# How often two pending events are taken to race: never is the paper's basic form, always would be
# a walk without memory.
_RACES = (0.0, 0.0, 0.25, 0.5)


class _Priorities:
    """The priorities of the actors, each drawn when it is first met."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._draw = self._random.random
        self._priorities: dict[Hashable, float] = {}

    def _highest(self, actors: list[Hashable]) -> int:
        priorities = self._priorities
        for actor in actors:
            if actor not in priorities:
                priorities[actor] = self._draw()
        return max(range(len(actors)), key=lambda n: priorities[actors[n]])


class Pct(_Priorities):
    """`length` is how many choice points the plain run has met; `depth` is d, drawn if None."""

    def __init__(self, seed: int, length: int = 0, depth: int | None = None) -> None:
        super().__init__(seed)
        self.depth = self._random.choice(_DEPTHS) if depth is None else depth
        points = range(length or _LENGTH)
        self._drops = frozenset(self._random.sample(points, min(self.depth - 1, len(points))))
        self._point = -1
        self._lowest = 0.0

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        if kind in NO_PRIORITY:
            return mostly_plain(self._draw(), options)
        self._point += 1
        numbered = list(_numbered(actors()))
        answer = self._highest(numbered)
        if self._point in self._drops:
            self._lowest -= 1.0
            self._priorities[numbered[answer]] = self._lowest
            answer = self._highest(numbered)
        return answer


class Pos(_Priorities):
    """`races` is how often two pending events are taken to race, drawn if None."""

    def __init__(self, seed: int, races: float | None = None) -> None:
        super().__init__(seed)
        self._races = self._random.choice(_RACES) if races is None else races

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        if kind in NO_PRIORITY:
            return mostly_plain(self._draw(), options)
        numbered = list(_numbered(actors()))
        answer = self._highest(numbered)
        priorities = self._priorities
        del priorities[numbered[answer]]
        if self._races:
            for actor in numbered:
                if actor in priorities and self._draw() < self._races:
                    del priorities[actor]
        return answer


def _numbered(actors: Sequence[Hashable]) -> Iterator[Hashable]:
    """The actors as (name, which of that name): several may have the same one."""
    count: dict[Hashable, int] = {}
    for actor in actors:
        number = count.get(actor, 0)
        count[actor] = number + 1
        yield actor, number
