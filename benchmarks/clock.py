"""The one way in which a stretch of work is timed here.

The garbage of whatever ran before is collected first, so that nobody pays for a neighbour.
The collector stays on while the clock runs, because its cost is part of the work.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from time import perf_counter


async def seconds_of(work: Awaitable[object]) -> float:
    """Await `work` and give the seconds it took."""
    gc.collect()
    start = perf_counter()
    await work
    return perf_counter() - start


def seconds_of_call(work: Callable[[], object]) -> float:
    """Call `work` and give the seconds it took."""
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start
