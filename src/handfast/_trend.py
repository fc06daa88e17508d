"""Whether a series of samples grows, by a robust trend.

The slope is the median of the slopes of all pairs (Theil and Sen): a burst or a single step of the
allocator does not change it. A leak continues to the end, so the later half must grow as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median

Sample = tuple[float, float]
"""The number of runs (or tasks) so far, and what was counted then."""

ENOUGH = 4
"""The least number of samples in the later half."""

# How often the later half must rise. A pool grows when demand reaches a new record, which becomes
# rarer with time; a leak continues at its rate.
_RISES = 3
# By how many standard deviations the rising pairs must exceed what chance gives (Mann and Kendall).
# Chance alone reaches this in one series of a thousand, and seldom in both halves.
_BEYOND_CHANCE = 3.0


def slope(samples: Sequence[Sample]) -> float:
    """What is added per run: the median over all pairs of samples."""
    return median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(samples, 2))


def growth(samples: Sequence[Sample]) -> float:
    """What the trend adds over the series: the lesser of the whole series' and its later half's."""
    if len(samples) < 2 * ENOUGH:
        raise ValueError(f"{len(samples)} samples show no trend: at least {2 * ENOUGH} are needed")
    span = samples[-1][0] - samples[0][0]
    later = samples[len(samples) // 2 :]
    return min(slope(samples), slope(later)) * span


def grows(samples: Sequence[Sample]) -> bool:
    """Whether the series grows so steadily that it cannot be noise.

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
