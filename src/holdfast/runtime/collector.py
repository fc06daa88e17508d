"""The cyclic garbage collector, out of the way while very many tasks are closed.

A burst of a hundred thousand small objects makes it look through everything that is alive,
again and again, and it finds nothing: half of the time of such a close. The pause is short,
and ends whatever happens.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["BURST", "collector_paused"]

# From so many tasks on it pays.
MANY = 1_000
# Seconds for which user code may run under one pause.
BURST = 0.05


@contextmanager
def collector_paused(tasks: int) -> Iterator[None]:
    """No automatic collection inside, if so many tasks are worth it."""
    if tasks < MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
