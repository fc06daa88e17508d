"""SURW, the selectively uniform random walk (Zhao, Wolff, Mathur, Roychoudhury: "Selectively uniform
concurrency testing", ASPLOS 2025).

A walk that draws each step uniformly does not draw orders uniformly: an actor with one event nearly
always goes before the last of an actor with ten. If each step is drawn with the number of events
that its actor still has as its weight, all orders are equally likely. That holds for a selection
of the events: an actor of the selection waits until it is its turn, and those outside it go at any
time. The smaller the selection, the fewer orders it has.

The numbers of events are those of the plain run. The paper selects the accesses to a shared
variable; here it is not known what an event will access, so the selection is drawn for each run:
all actors, or a few of them.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence

from handfast._explore.search.deciders.follow import Actors
from handfast._explore.search.deciders.priority import NO_PRIORITY
from handfast._explore.search.deciders.random_walk import mostly_plain
from handfast._explore.search.plan import Actor

# Choices that are not between events of actors.
_NO_ACTORS = NO_PRIORITY | {"overtake"}
# How often all actors are selected.
_ALL = 0.5


class Uniform:
    """`counts`: the number of events of each actor."""

    def __init__(self, seed: int, counts: Sequence[tuple[Actor, int]] = ()) -> None:
        self._random = random.Random(seed)
        self._left: dict[Hashable, int] = {actor: count for actor, count in counts if actor}
        self._all = self._random.random() < _ALL or len(self._left) < 3
        if not self._all:
            chosen = self._random.sample(
                list(self._left), self._random.randint(2, len(self._left) - 1)
            )
            self._left = {actor: self._left[actor] for actor in chosen}
        self._turn: Hashable = None

    def choose(self, kind: str, options: int, actors: Actors) -> int:
        if kind in _NO_ACTORS:
            return mostly_plain(self._random.random(), options)
        waiting = actors()
        free = [n for n, actor in enumerate(waiting) if not self._is_selected(actor)]
        # Who waits has one event at least, although the plain run may have had none.
        come = {
            each: max(1, self._left.get(each, 1)) for each in waiting if self._is_selected(each)
        }
        if self._turn is None and come:
            self._turn = self._draw({**self._left, **come})
        if not free and self._turn not in come:
            self._turn = self._draw(come)  # it cannot come before one of these has
        mine = [n for n, actor in enumerate(waiting) if actor == self._turn]
        if mine:  # several may have the same name
            free.append(self._random.choice(mine))
        answer = self._random.choice(free)
        if answer in mine:
            self._left[self._turn] = come[self._turn] - 1
            self._turn = None
        return answer

    def _is_selected(self, actor: Hashable) -> bool:
        return bool(actor) and (self._all or actor in self._left)

    def _draw(self, left: dict[Hashable, int]) -> Hashable:
        """One of these, by the number of events that it still has."""
        return self._random.choices(list(left), list(left.values()))[0]
