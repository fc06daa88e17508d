"""The clocks of the `time` module, virtual for code that runs on an explored loop.

A stock loop's `time()` is `time.monotonic()`, so a program may compare the two. Elsewhere, in
another thread or after the run, the real clocks answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# The loop whose time a thread of an explored program keeps, by the identity of the thread.
LOOPS: dict[int, Any] = {}

# Sunday, 9 September 2001: a wall clock that reads the same in every run.
_EPOCH = 1_000_000_000.0
_OFFSETS = {"monotonic": 0.0, "perf_counter": 0.0, "time": _EPOCH}


def _virtual(name: str, kind: type) -> Callable[[], Any]:
    real = getattr(time, name)
    offset = _OFFSETS[name.removesuffix("_ns")]
    scale = 1_000_000_000 if name.endswith("_ns") else 1

    def clock() -> Any:
        loop: Any = asyncio._get_running_loop() or LOOPS.get(get_ident())
        if loop is None or not getattr(loop, "virtual", False):
            return real()
        now = loop.time()
        if hasattr(loop, "clock_read"):
            now += loop.clock_read(sys._getframe(1))
        if offset:
            now += getattr(loop, "wall_offset", offset)
        return kind(now * scale)

    clock.__name__ = name
    return clock


_NAMES = [name + suffix for name in _OFFSETS for suffix in ("", "_ns")]
VIRTUAL = {name: _virtual(name, int if name.endswith("_ns") else float) for name in _NAMES}
# The real clocks and what replaces them, also where a module has imported one by its name.
REPLACED = [(getattr(time, name), clock) for name, clock in VIRTUAL.items()]


@contextmanager
def virtual_clocks() -> Iterator[None]:
    """For as long as this lasts, `time.monotonic()` and the others follow the loop."""
    # Read now and not at import: a test may have replaced a clock, and gets it back.
    before = {name: getattr(time, name) for name in _NAMES}
    try:
        for name, clock in VIRTUAL.items():
            setattr(time, name, clock)
        yield
    finally:
        for name, clock in before.items():
            setattr(time, name, clock)
