"""What must be the same in every run though no loop controls it: the clocks of the `time` module,
the random numbers, and the moments at which the cyclic collector runs.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.explore.clocks import virtual_clocks
from holdfast.explore.twins.threads.patches import patched

__all__ = ["steady"]

# A collection each so many runs: what a run leaves in cycles is small.
_RUNS = 200


@contextmanager
def steady() -> Iterator[Callable[[int], None]]:
    """For as long as this lasts nothing is collected inside a run; call what it gives after each
    `n` runs. What is alive now is not looked at again (`gc.freeze`)."""
    collects = gc.isenabled()
    lots = random.getstate()
    gc.freeze()
    gc.disable()
    runs = 0

    def swept(count: int = 1) -> None:
        nonlocal runs
        runs += count
        if runs >= _RUNS:
            runs = 0
            gc.collect()

    try:
        with virtual_clocks(), patched():
            yield swept
    finally:
        random.setstate(lots)
        gc.collect()  # what the runs have left, and while all else is frozen that is quick
        gc.unfreeze()
        if collects:
            gc.enable()
