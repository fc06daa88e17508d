"""Which schedules to run: each strategy gives plans in batches and learns from their records.

A strategy knows numbers only: choice points with so many answers, instants at which so many tasks
can be cancelled. Its plans depend on the seed and on the records, in order, and on nothing else, so
that any number of workers finds the same thing.

Every module of this folder that has a table `STRATEGIES` (option name to factory) is a strategy.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from handfast._explore.search.plan import BadOption
from handfast._explore.search.strategies.strategy import Factory, Strategy

__all__ = ["STRATEGIES", "Strategy", "make"]


def _table() -> dict[str, Factory]:
    table: dict[str, Factory] = {}
    for module in iter_modules(__path__, f"{__name__}."):
        table |= getattr(import_module(module.name), "STRATEGIES", {})
    return table


STRATEGIES = _table()
_RENAMED = {"dpor": "states"}


def make(name: str, *, seed: int, schedules: int | None, cancels: int) -> Strategy:
    """The strategy of this name. `cancels` is how many a single run may have."""
    if name in _RENAMED:
        raise ValueError(f"strategy={name!r} is now called {_RENAMED[name]!r}")
    if name not in STRATEGIES:
        raise BadOption("strategy", name, tuple(STRATEGIES))
    return STRATEGIES[name](seed, schedules, cancels)
