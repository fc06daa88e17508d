"""Partial order sampling (Yuan, Yang, Gu: "Partial order aware concurrency sampling", CAV 2018).

Each pending event has a priority by lot; the highest goes first, and whoever it belongs to draws
a new one for its next event. A pending event that races with the one that went draws again, too.
"""

from __future__ import annotations

import random
from collections.abc import Hashable

from holdfast.explore.deciders.contest import NO_CONTEST, contenders
from holdfast.explore.deciders.following import Actors
from holdfast.explore.deciders.random_walk import mostly_plain

__all__ = ["Pos"]

# Whether two events race is not known before they have run. So each run takes them to do so this
# often: never is the paper's basic form, always would be a walk without memory.
_RACES = (0.0, 0.0, 0.25, 0.5)


class Pos:
    """`races` is how often two pending events are taken to race, by lot if None."""

    def __init__(self, seed: int, races: float | None = None) -> None:
        lot = random.Random(seed)
        self._lot = lot.random
        self._races = lot.choice(_RACES) if races is None else races
        self._priorities: dict[Hashable, float] = {}

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        if kind in NO_CONTEST:
            return mostly_plain(self._lot(), options)
        priorities = self._priorities
        who = list(contenders(actors()))
        for contender in who:
            if contender not in priorities:
                priorities[contender] = self._lot()
        answer = max(range(options), key=lambda n: priorities[who[n]])
        del priorities[who[answer]]
        if self._races:
            for contender in who:
                if contender in priorities and self._lot() < self._races:
                    del priorities[contender]
        return answer
