"""Does a series of samples grow? A robust trend decides, not a pair of samples.

The slope is the median of the slopes of all pairs (Theil and Sen): a burst or a single step of the
allocator does not move it. A leak goes on to the end, so the later half must grow as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median

__all__ = ["ENOUGH", "Sample", "grows", "growth", "slope"]

Sample = tuple[float, float]
"""How many tasks or runs have been through, and what was there then."""

ENOUGH = 4
"""Samples in the later half, below which no trend can be told."""

# How often the later half must rise. A pool that is as large as the most that was ever asked of it
# has the more seldom a new record the longer it runs; a leak goes on as it began.
_RISES = 3
# How far, in standard deviations, the pairs that rise must outnumber what chance gives (Mann and
# Kendall). Chance alone goes so far in one series of a thousand, and seldom in both halves.
_BEYOND_CHANCE = 3.0


def slope(samples: Sequence[Sample]) -> float:
    """What is added per task, in the median of all pairs of samples."""
    return median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(samples, 2))


def growth(samples: Sequence[Sample]) -> float:
    """What the trend adds over the whole series; the lesser of all samples' and the later half's."""
    if len(samples) < 2 * ENOUGH:
        raise ValueError(f"{len(samples)} samples tell no trend: at least {2 * ENOUGH} are needed")
    span = samples[-1][0] - samples[0][0]
    later = samples[len(samples) // 2 :]
    return min(slope(samples), slope(later)) * span


def grows(samples: Sequence[Sample]) -> bool:
    """Whether the series goes up and up: so steadily that no noise looks like it.

    >>> grows([(run, run // 3) for run in range(20)])
    True
    >>> grows([(run, min(run, 8)) for run in range(20)])  # a pool that has filled
    False
    """
    if growth(samples) <= 0:
        return False
    later = samples[len(samples) // 2 :]
    rises = sum(after > before for (_, before), (_, after) in pairwise(later))
    return rises >= _RISES and _beyond_chance(samples) >= _BEYOND_CHANCE


def _beyond_chance(samples: Sequence[Sample]) -> float:
    signs = sum((y2 > y1) - (y2 < y1) for (_, y1), (_, y2) in combinations(samples, 2))
    n = len(samples)
    return signs / math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
