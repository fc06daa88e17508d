"""A decider that leaves the answer to another, and writes down the state in which it was asked."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.explore.deciders import Actors
from holdfast.explore.states.snapshot import state_of
from holdfast.explore.stepping import Decider

__all__ = ["Remembering"]


class Remembering:
    """`states` has one entry for each choice point of the run; None where it is not known. Up to
    the point `since` it does not look: there the run is one that was looked at before."""

    def __init__(self, decider: Decider, loop: Any, since: int = -1) -> None:
        self._decider = decider
        self._loop = loop
        self._since = since
        self.states: list[int | None] = []

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        looks = len(self.states) > self._since
        self.states.append(state_of(self._loop, sys._getframe(1)) if looks else None)
        return self._decider.choose(kind, options, actors)
