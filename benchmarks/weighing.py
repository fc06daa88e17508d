"""python -m benchmarks.weighing WAY N: the bytes of one of N live tasks, kept in this WAY.

A process of its own for each weighing: asyncio's table of all tasks keeps the size that an earlier
weighing gave it, which would make the later ones look light.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc

from benchmarks.fresh_process import run_python
from benchmarks.live import WAYS, Live


def bytes_per_task(way: str, n: int) -> float:
    """Weigh in a fresh process."""
    return float(run_python("-m", "benchmarks.weighing", way, str(n)).stdout)


async def weigh(way: type[Live], n: int) -> float:
    """Weigh in this process, which must be fresh."""
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
