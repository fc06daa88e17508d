"""Runs a comparison: rounds interleaved (A B C, A B C, ...), best and median, ratios, verdict.

Interleaving makes a slow moment of the machine hit every contestant alike. Ratios are those of
the best times, the ones least disturbed; medians are reported beside them. Nothing is printed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.comparison import Comparison, Laps


@dataclass(frozen=True, slots=True)
class Figure:
    """What one contestant needed: its best lap, and the median of its laps."""

    best: float
    median: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """One comparison, measured."""

    comparison: Comparison
    n: int
    rounds: int
    figures: dict[str, Figure]
    not_measured: tuple[str, ...]
    load: float
    """How many other processes wanted each processor when we began; over 1, figures are rough."""

    @property
    def ratios(self) -> dict[str, float]:
        best = {name: figure.best for name, figure in self.figures.items()}
        values = ((ratio.name, ratio.value(best)) for ratio in self.comparison.ratios)
        return {name: value for name, value in values if value is not None}

    @property
    def met(self) -> bool:
        ratios = self.ratios
        return all(target.met(ratios) for target in self.comparison.targets)


def measure(
    comparison: Comparison, n: int | None, rounds: int | None, tell: Callable[[str], None]
) -> Outcome:
    """Run `comparison`, with its own n and rounds unless given; `tell` hears of each lap."""
    busy = load()
    n = n if n and comparison.sized else comparison.n
    rounds = rounds or comparison.rounds
    with comparison.laps(n) as laps:
        figures = interleave(laps, rounds, lambda text: tell(f"{comparison.work}: {text}"))
    absent = tuple(name for name, lap in laps.items() if lap is None)
    return Outcome(comparison, n, rounds, figures, absent, busy)


def load() -> float:
    """The load of the last minute for each processor; 0 where the system does not tell."""
    if not hasattr(os, "getloadavg"):
        return 0.0
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def interleave(laps: Laps, rounds: int, tell: Callable[[str], None]) -> dict[str, Figure]:
    """Each lap once in each round, after one round that warms up and does not count."""
    runs = {name: lap for name, lap in laps.items() if lap is not None}
    figures: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, lap in runs.items():
            tell(f"round {number} of {rounds}, {name}" if number else f"warming up, {name}")
            figure = lap()
            if number:
                figures[name].append(figure)
    return {name: Figure(min(laps), median(laps)) for name, laps in figures.items()}
