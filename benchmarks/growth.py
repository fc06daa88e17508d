"""Does a series of samples grow? A robust trend decides, not a pair of samples.

The slope is the median of the slopes of all pairs (Theil and Sen): a burst or a single step of the
allocator does not move it. A leak goes on to the end, so the later half must grow as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

Sample = tuple[float, float]
"""How many tasks have been through, and what was there then."""

ENOUGH = 4
"""Samples in the later half, below which no trend can be told."""


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
