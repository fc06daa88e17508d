"""A changed copy of another run: its answers, but for a stretch that is drawn anew."""

from __future__ import annotations

import random
from collections.abc import Sequence

from handfast._explore.search.deciders.follow import Actors
from handfast._explore.search.deciders.priority import Pos

# How often everything after the first changed answer is drawn anew.
_REST = 0.5
# How many answers another stretch has on average.
_STRETCH = 4.0


class Mutated:
    """The answers of a run that had `length` choice points, except where they are drawn."""

    def __init__(self, choices: Sequence[tuple[int, int]], seed: int, length: int) -> None:
        draw = random.Random(seed)
        self._answers = dict(choices)
        self._first = draw.randrange(length) if length else 0
        stretch = 1 + int(draw.expovariate(1 / _STRETCH))
        self._last = length if draw.random() < _REST else self._first + stretch
        self._length = length
        self._ordinal = -1
        self._sampler = Pos(seed)

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        self._ordinal += 1
        at = self._ordinal
        if self._first <= at < self._last or at >= self._length:
            return self._sampler.choose(kind, options, actors)
        answer = self._answers.get(at, 0)
        return answer if answer < options else 0
