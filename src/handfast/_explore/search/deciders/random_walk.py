"""Random walk: each answer is drawn independently."""

from __future__ import annotations

import random
from collections.abc import Callable

from handfast._explore.search.deciders.follow import Actors


def mostly_plain(drawn: float, options: int) -> int:
    """A number from [0, 1) as an answer: the plain one is as likely as all others together."""
    return 0 if drawn < 0.5 else 1 + int((drawn - 0.5) * 2 * (options - 1))


class RandomWalk:
    """Random answers, the plain one as likely as all others together."""

    def __init__(self, seed: int) -> None:
        self._draw: Callable[[], float] = random.Random(seed).random

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        return mostly_plain(self._draw(), options)
