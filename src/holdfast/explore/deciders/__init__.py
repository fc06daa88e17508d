"""Who answers at the choice points of one run. 0 is the plain order, always.

A decider sees how many answers there are and whom each would let go first; it knows nothing of
asyncio. Each is made from a plan and nothing else, so that any process can make the same one.
"""

from __future__ import annotations

from holdfast.explore.deciders.following import Actors, Diverged, Follow
from holdfast.explore.deciders.pct import Pct
from holdfast.explore.deciders.pos import Pos
from holdfast.explore.deciders.random_walk import RandomWalk
from holdfast.explore.plan import Plan

__all__ = ["Actors", "Diverged", "Follow", "Pct", "Pos", "RandomWalk", "decider"]


def decider(plan: Plan) -> Follow | RandomWalk | Pct | Pos:
    """The decider that a plan asks for."""
    if plan.tail == "random":
        return RandomWalk(plan.seed)
    if plan.tail == "pct":
        return Pct(plan.seed, plan.length)
    if plan.tail == "pos":
        return Pos(plan.seed)
    return Follow(plan.choices)
