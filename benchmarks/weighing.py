"""python -m benchmarks.weighing WAY N: the bytes of one of N running tasks, kept in this WAY.

Each measurement needs a new process: asyncio's table of all tasks keeps its size, so that later
measurements would be too small.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc

from benchmarks.fresh_process import run_python
from benchmarks.live import WAYS, Live


def bytes_per_task(way: str, n: int) -> float:
    """Measure in a new process."""
    return float(run_python("-m", "benchmarks.weighing", way, str(n)).stdout)


async def weigh(way: type[Live], n: int) -> float:
    """Measure in this process, which must be new."""
    warm_up = way(1)
    await warm_up.spawn()
    await warm_up.close()
    live = way(n)
    gc.collect()
    tracemalloc.start()
    await live.spawn()
    gc.collect()
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await live.close()
    return traced / n


def main(way: str, n: str) -> None:
    ways = {each.name: each.way for each in WAYS}
    print(asyncio.run(weigh(ways[way], int(n))))


if __name__ == "__main__":
    main(*sys.argv[1:])
