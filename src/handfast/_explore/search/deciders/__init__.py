"""Deciders answer the choice points of one run. 0 is always the plain order.

A decider sees how many answers there are and which actor each would let go first; it knows nothing
of asyncio. Each is made from a plan and nothing else, so that any process can make the same one.
"""

from __future__ import annotations

from handfast._explore.search.deciders.follow import Actors, Diverged, Follow
from handfast._explore.search.deciders.mutated import Mutated
from handfast._explore.search.deciders.priority import Pct, Pos
from handfast._explore.search.deciders.random_walk import RandomWalk
from handfast._explore.search.deciders.uniform import Uniform
from handfast._explore.search.plan import Plan

__all__ = [
    "Actors",
    "Diverged",
    "Follow",
    "Mutated",
    "Pct",
    "Pos",
    "RandomWalk",
    "Uniform",
    "decider",
]


def decider(plan: Plan) -> Follow | RandomWalk | Pct | Pos | Uniform | Mutated:
    """The decider for the tail of a plan."""
    match plan.tail:
        case "random":
            return RandomWalk(plan.seed)
        case "pct":
            return Pct(plan.seed, plan.length)
        case "pos":
            return Pos(plan.seed)
        case "surw":
            return Uniform(plan.seed, plan.counts)
        case "mutate":
            return Mutated(plan.choices, plan.seed, plan.length)
    return Follow(plan.choices)
