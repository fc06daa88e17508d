"""Read the output of a child process to its end: `cat` of a large file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of

MEGABYTE = 1 << 20
PIECE = 64 * 1024

Way = Callable[[str], Awaitable[int]]
"""Reads the output of `cat PATH`, and returns its size."""


async def by_hand(path: str) -> int:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("cat", path, stdout=pipe)
    assert process.stdout is not None
    size = 0
    while piece := await process.stdout.read(PIECE):
        size += len(piece)
    await process.wait()
    return size


async def chunks(path: str) -> int:
    import handfast

    size = 0
    async with handfast.Process("cat", path) as process:
        async for piece in process.stdout.chunks():
            size += len(piece)
        await process.wait()
    return size


CONTESTANTS: tuple[Contestant[Way], ...] = (
    Contestant("asyncio.subprocess", by_hand),
    Contestant("handfast", chunks, needs="handfast"),
)


CLOCKS: dict[str, Callable[[], float]] = {"": process_time, ", wall": perf_counter}
"""The time of this process, and the time until the last byte.

The latter depends on how the system's scheduler alternates between the child and its reader.
"""


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    """`n` is the size in megabytes."""
    with tempfile.NamedTemporaryFile() as file, asyncio.Runner() as runner:
        os.truncate(file.name, n * MEGABYTE)  # zeros: nothing is read from a disk

        def lap(way: Way, clock: Callable[[], float]) -> Lap:
            async def timed() -> float:
                start = clock()
                size = await way(file.name)
                seconds = clock() - start
                assert size == n * MEGABYTE, f"{size} bytes of {n * MEGABYTE} were read"
                return seconds

            return lambda: runner.run(timed())

        yield {
            f"{name}{label}": each
            for label, clock in CLOCKS.items()
            for name, each in laps_of(CONTESTANTS, partial(lap, clock=clock)).items()
        }


RATIOS = tuple(
    Ratio(f"asyncio.subprocess / handfast{label}", f"asyncio.subprocess{label}", f"handfast{label}")
    for label in CLOCKS
)
COMPARISON = Comparison(
    work="process",
    title="`cat` of {n:,} MB, read to the end",
    n=1_000,
    rounds=5,
    laps=laps,
    ratios=RATIOS,
    targets=tuple(Target(ratio.name, ">=", 0.9) for ratio in RATIOS),
)
