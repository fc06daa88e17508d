"""Which schedules to run: each strategy gives plans in batches and learns from their records.

A strategy knows numbers only: choice points with so many answers, instants at which so many tasks
can be cancelled. What it asks for depends on the seed and on the records, in order, and on
nothing else, so that any number of workers finds the same thing.
"""

from __future__ import annotations

from holdfast.explore.strategies.portfolio import Portfolio
from holdfast.explore.strategies.reduction import Reduction
from holdfast.explore.strategies.sampling import Sampling
from holdfast.explore.strategies.strategy import STRATEGIES, Strategy
from holdfast.explore.strategies.systematic import Systematic

__all__ = ["STRATEGIES", "Strategy", "make"]


def make(name: str, *, seed: int, schedules: int | None, cancels: int) -> Strategy:
    """The strategy of this name. `cancels` is how many a single run may have."""
    if name == "dfs":
        return Systematic(cancels, schedules)
    if name == "portfolio":
        return Portfolio(seed, schedules, cancels)
    if name == "dpor":
        return Reduction(cancels, schedules)
    return Sampling((name,), seed, cancels)  # type: ignore[arg-type]
