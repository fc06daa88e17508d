"""python -m benchmarks.soak: run millions of tasks in one scope, and check that nothing grows.

They are spawned and joined in batches; after the first 100,000, the objects, the allocated blocks
and the resident memory are sampled. Exit code 1 if one of them keeps growing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import handfast
from benchmarks.compare import INTERRUPTED, positive
from benchmarks.progress import Progress
from benchmarks.work import no_op
from handfast._trend import ENOUGH, growth

WARM_UP = 100_000
BATCH = 10_000
SAMPLES = 100

OBJECTS_ALLOWED = 100
"""For the whole run: a leak of one object in 10,000 tasks would be a thousand."""
BLOCKS_ALLOWED = 500
"""Includes what the collector does not track (strings, numbers)."""
RESIDENT_ALLOWED = 8 * 1024 * 1024
"""The heap itself grows: bare asyncio also needs a few more arenas of 1 MiB after millions of tasks."""


class Samples:
    """The samples, each taken after a full collection.

    Kept in arrays, so that the samples themselves add no blocks.
    """

    def __init__(self) -> None:
        self.tasks = array("q")
        self.objects = array("q")
        self.blocks = array("q")
        self.resident = array("q")

    def take(self, tasks: int) -> None:
        gc.collect()
        self.tasks.append(tasks)
        self.objects.append(len(gc.get_objects()))
        self.blocks.append(sys.getallocatedblocks())
        self.resident.append(resident_bytes())


def resident_bytes() -> int:
    """Return the resident memory; the peak if the system does not have the current value."""
    statm = Path("/proc/self/statm")
    import resource

    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


async def spawn_and_join(scope: handfast.Scope, tasks: int) -> None:
    for task in [scope.spawn(no_op()) for _ in range(tasks)]:
        await task


async def soak(tasks: int, progress: Progress) -> Samples:
    scope = handfast.Scope("soak")
    samples = Samples()
    every = max(1, (tasks - WARM_UP) // SAMPLES)
    done = 0
    next_sample = WARM_UP
    start = monotonic()
    while done < tasks:
        batch = min(BATCH, tasks - done)
        await spawn_and_join(scope, batch)
        done += batch
        if done >= next_sample:
            samples.take(done)
            next_sample += every
        speed = done / (monotonic() - start)
        progress.show(f"soak: {done:,} of {tasks:,} tasks, {speed:,.0f} a second")
    report = await scope.close()
    report.raise_if_unclean()
    return samples


def verdict(samples: Samples) -> bool:
    """Print the results; return whether nothing grew."""
    steady = True
    for what, series, allowed in (
        ("objects", samples.objects, OBJECTS_ALLOWED),
        ("blocks", samples.blocks, BLOCKS_ALLOWED),
        ("resident bytes", samples.resident, RESIDENT_ALLOWED),
    ):
        grown = growth(list(zip(samples.tasks, series, strict=True)))
        steady = steady and grown <= allowed
        print(
            f"{what:<15} {series[0]:>14,} -> {series[-1]:>14,}   trend {grown:>+12,.0f}"
            f"   at most {allowed:>+10,}   {'steady' if grown <= allowed else 'GROWS'}"
        )
    return steady


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--tasks", type=positive, default=10_000_000, help="default: 10,000,000")
    options = parser.parse_args(argv)
    least = WARM_UP + 2 * ENOUGH * BATCH
    if options.tasks < least:
        parser.error(f"--tasks must be at least {least:,}: the first {WARM_UP:,} do not count")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    try:
        with Progress() as progress:
            samples = asyncio.run(soak(options.tasks, progress))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    print(f"soak: {options.tasks:,} tasks through one scope, {len(samples.tasks)} samples")
    return 0 if verdict(samples) else 1


if __name__ == "__main__":
    sys.exit(main())
