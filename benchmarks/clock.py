"""The one way in which a stretch of work is timed here.

Garbage is collected first, so that no measurement pays for the one before it.
The collector stays on while the clock runs, because its cost is part of the work.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from time import process_time


async def seconds_of(work: Awaitable[object]) -> float:
    """Await `work` and give the seconds it took."""
    gc.collect()
    start = process_time()
    await work
    return process_time() - start


def seconds_of_call(work: Callable[[], object]) -> float:
    """Call `work` and give the seconds it took."""
    gc.collect()
    start = process_time()
    work()
    return process_time() - start
