"""What every strategy has in common."""

from __future__ import annotations

from typing import Protocol

from holdfast.explore.plan import Plan, Record

__all__ = ["BATCH", "STRATEGIES", "Strategy"]

STRATEGIES = ("portfolio", "dfs", "random", "pct", "pos", "dpor")
# Plans are handed out in batches of this size, however many workers there are: what a strategy
# has learnt when it makes a plan may not depend on their number.
BATCH = 64


class Strategy(Protocol):
    """Gives plans until it has none left, and is told of each record in the order of the plans."""

    @property
    def bound(self) -> int | None:
        """Every schedule with at most so many departures has been run; None: not even the plain one."""
        ...

    @property
    def complete(self) -> bool:
        """Whether there is no schedule beyond those that are run, or are equal to one that is."""
        ...

    def batch(self) -> list[Plan]: ...
    def learn(self, record: Record) -> None: ...
