"""Close with many live tasks: is the time linear in their number?

Bare asyncio is not quite: what outgrows the processor's cache and what the collector walks
through both cost more than ten times as much. Its ratio stands beside ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.clock import seconds_of
from benchmarks.comparison import Comparison, Lap, Laps, Ratio, Target, laps_of
from benchmarks.live import WAYS, Live

TIMES = 10
"""The few are closed as often as they go into the many: a busy machine then hits both laps alike."""


async def seconds_to_close(way: type[Live], n: int) -> float:
    live = way(n)
    await live.spawn()
    return await seconds_of(live.close())


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    few = max(1, n // TIMES)
    with asyncio.Runner() as runner:

        def many_once(way: type[Live]) -> Lap:
            return lambda: runner.run(seconds_to_close(way, n))

        def few_often(way: type[Live]) -> Lap:
            return lambda: sum(runner.run(seconds_to_close(way, few)) for _ in range(TIMES)) / TIMES

        yield {
            f"{name}, {label}": lap
            for label, kind in (("n / 10", few_often), ("n", many_once))
            for name, lap in laps_of(WAYS, kind).items()
        }


COMPARISON = Comparison(
    work="close",
    title="n = {n:,} live tasks, cancelled and joined, against n / 10",
    n=100_000,
    rounds=5,
    laps=laps,
    ratios=(
        *(Ratio(way.name, f"{way.name}, n", f"{way.name}, n / 10") for way in WAYS),
        Ratio("holdfast / bare, n", "holdfast, n", "bare, n"),
    ),
    targets=(Target("holdfast", "<=", 12.0),),
)
