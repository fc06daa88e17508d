"""What must be the same in every run although no loop controls it: the clocks of the `time` module,
the random numbers, and the moments at which the cyclic garbage collector runs.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from handfast._explore.loop.virtual_clock import virtual_clocks
from handfast._explore.simulation.threads.patches import patched

# How many runs to a collection. A collection calls `__del__` and weakref callbacks of the program,
# so it must never happen inside a run; what a run leaves in cycles is small.
_RUNS = 200


class _State:
    """The block that is open in this process."""

    collect: Callable[[int], None] | None = None


@contextmanager
def steady(collector: Callable[[], object] = gc.collect) -> Iterator[Callable[[int], None]]:
    """Keep the clocks, random numbers and the garbage collector from influencing runs.

    Nothing is collected inside a run. Call the function that this gives with the number of runs,
    after them. Objects that exist already are not traversed again (`gc.freeze`).
    `collector` collects: another one limits the time of the program's finalizers.
    """
    if _State.collect is not None:
        yield _State.collect  # inside another block, which ends later
        return
    collects = gc.isenabled()
    random_state = random.getstate()
    gc.freeze()
    gc.disable()
    runs = 0

    def collect(count: int = 1) -> None:
        nonlocal runs
        runs += count
        if runs >= _RUNS:
            runs = 0
            collector()

    _State.collect = collect
    try:
        with virtual_clocks(), patched():
            yield collect
    finally:
        _State.collect = None
        random.setstate(random_state)
        collector()  # what the runs have left; quick while all else is frozen
        gc.unfreeze()
        if collects:
            gc.enable()
