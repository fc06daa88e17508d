"""The parts of a comparison: contestants, laps, ratios, targets.

A file in `comparisons/` fills these in; `measuring` runs them.
Nothing is measured or printed here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

Lap = Callable[[], float]
"""Does the work once for one contestant, and returns its figure (seconds or bytes)."""


@dataclass(frozen=True, slots=True)
class Contestant(Generic[T]):
    """One implementation of the work. `needs` is the module that it requires."""

    name: str
    way: T
    needs: str = "asyncio"

    @property
    def installed(self) -> bool:
        spec = find_spec(self.needs)
        return spec is not None and spec.origin is not None


Laps = Mapping[str, Lap | None]
"""Every contestant's lap in the order of the round; None for one that is not installed."""


def laps_of(contestants: Iterable[Contestant[T]], lap: Callable[[T], Lap]) -> Laps:
    """Return a lap for each contestant that can run here."""
    return {each.name: lap(each.way) if each.installed else None for each in contestants}


@dataclass(frozen=True, slots=True)
class Ratio:
    """One contestant's figure over another's; `combine` is division by default."""

    name: str
    of: str
    over: str
    combine: Callable[[float, float], float] = operator.truediv

    def value(self, figures: Mapping[str, float]) -> float | None:
        """The ratio, or None if one of the two was not measured."""
        if self.of not in figures or self.over not in figures:
            return None
        return self.combine(figures[self.of], figures[self.over])


SENSES: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for a ratio. A ratio that was not measured does not meet it."""

    ratio: str
    sense: Literal["<=", "<", ">="]
    bound: float

    def met(self, ratios: Mapping[str, float]) -> bool:
        return self.ratio in ratios and SENSES[self.sense](ratios[self.ratio], self.bound)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One WORK of `python -m benchmarks.compare WORK`.

    `laps(n)` is a context manager: it sets up loops and threads before the first lap and takes
    them down after the last.
    """

    work: str
    title: str
    n: int
    rounds: int
    laps: Callable[[int], AbstractContextManager[Laps]]
    ratios: tuple[Ratio, ...]
    targets: tuple[Target, ...]
    unit: Literal["seconds", "bytes"] = "seconds"
    sized: bool = True
    """False if `--n` does not change the work."""
