"""What every strategy has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from handfast._explore.search.plan import Plan, Record

# Plans are returned in batches of this size, however many workers there are: what a strategy
# has learnt when it makes a plan may not depend on their number.
BATCH = 64
# Without a bound on the schedules, a strategy keeps no more than this many plans in memory.
MEMORY = 200_000


class Strategy(Protocol):
    """Gives plans until it has none left, and gets each record in the order of the plans."""

    @property
    def bound(self) -> int | None:
        """Every schedule with at most so many departures has been run; None: not even the plain one."""
        ...

    @property
    def complete(self) -> bool:
        """Whether every schedule that exists has been run, or is equal to one that has."""
        ...

    def batch(self) -> list[Plan]: ...
    def learn(self, record: Record) -> None: ...


# Makes a strategy from the seed, the number of schedules that it may run (None: no limit), and how
# many cancels one run may have.
Factory: TypeAlias = Callable[[int, int | None, int], Strategy]
