"""A decider that records the state at each choice, and leaves the answer to another decider."""

from __future__ import annotations

import sys
from typing import Any

from handfast._explore.loop.stepping import Decider
from handfast._explore.search.deciders import Actors
from handfast._explore.search.states.loop_state import state_of


class StateRecorder:
    """`states` has one entry for each choice point of the run; None where it is unknown.

    Up to the point `since` nothing is recorded: there the run repeats one that was recorded before.
    """

    def __init__(self, decider: Decider, loop: Any, since: int = -1) -> None:
        self._decider = decider
        self._loop = loop
        self._since = since
        self.states: list[int | None] = []

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        records = len(self.states) > self._since
        self.states.append(state_of(self._loop, sys._getframe(1)) if records else None)
        return self._decider.choose(kind, options, actors)
