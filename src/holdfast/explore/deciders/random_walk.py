"""Answers by lot, each for itself."""

from __future__ import annotations

import random
from collections.abc import Callable

from holdfast.explore.deciders.following import Actors

__all__ = ["RandomWalk", "mostly_plain"]


def mostly_plain(lot: float, options: int) -> int:
    """A lot from [0, 1) as an answer: the plain one is as likely as all others together."""
    return 0 if lot < 0.5 else 1 + int((lot - 0.5) * 2 * (options - 1))


class RandomWalk:
    """Each answer by lot, the plain one as likely as all others together."""

    def __init__(self, seed: int) -> None:
        self._lot: Callable[[], float] = random.Random(seed).random

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        return mostly_plain(self._lot(), options)
