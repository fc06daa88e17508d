"""Pauses the cyclic garbage collector while very many tasks are closed.

A burst of a hundred thousand small objects makes the collector scan all live objects several
times and find nothing: that is half of the time of such a close. The pause is short, and always
ends.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# With fewer tasks the pause is not worth it.
MANY = 1_000
# Seconds for which user code may run during one pause.
BURST = 0.05


@contextmanager
def gc_paused(tasks: int) -> Iterator[None]:
    """Suspend automatic collection if there are many tasks."""
    if tasks < MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
