"""Keep the other threads of the process from running for a moment."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# The least that a thread waits for the GIL before it requests it, in seconds: a thread that began
# to wait before `alone` still does so after Python's usual 5 ms.
_OTHERS_HAVE_READ = 0.006


@contextmanager
def alone(most: float) -> Iterator[None]:
    """Hold the GIL for up to `most` seconds, so that a search sees one state of the heap.

    The garbage collector is off meanwhile, since finalizers may release the GIL.
    """
    interval = sys.getswitchinterval()
    collects = gc.isenabled()
    sys.setswitchinterval(max(interval, most))
    try:
        time.sleep(_OTHERS_HAVE_READ)
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()
        sys.setswitchinterval(interval)
