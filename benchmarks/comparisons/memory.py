"""The memory of one running task, with and without tracking."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Laps, Ratio, Target
from benchmarks.live import WAYS
from benchmarks.weighing import bytes_per_task

SIZES: Mapping[str, Callable[[int], int]] = {
    "n / 10": lambda n: max(1, n // 10),
    "n": lambda n: n,
    "10 n": lambda n: 10 * n,
}
"""Tables grow in steps and are larger just after one, hence three sizes."""


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    yield {
        f"{way.name}, {label}": partial(bytes_per_task, way.name, size(n))
        if way.installed
        else None
        for way in WAYS
        for label, size in SIZES.items()
    }


COMPARISON = Comparison(
    work="memory",
    title="bytes of one of n = {n:,} live tasks; ratios are bytes over a bare one",
    n=10_000,
    rounds=1,
    laps=laps,
    ratios=tuple(
        Ratio(f"{way.name}, {label}", f"{way.name}, {label}", f"bare, {label}", operator.sub)
        for way in WAYS
        if way.name != "bare"
        for label in SIZES
    ),
    targets=(Target("handfast, n", "<=", 200.0),),
    unit="bytes",
)
