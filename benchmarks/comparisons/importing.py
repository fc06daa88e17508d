"""The time of `import handfast`, against `import asyncio`: each in a fresh process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contestant, Laps, Ratio, Target, laps_of
from benchmarks.fresh_process import run_python

MODULES = ("asyncio", "aiotools", "anyio", "aiojobs", "handfast")
CONTESTANTS = tuple(Contestant(module, module, needs=module) for module in MODULES)


def seconds_to_import(module: str) -> float:
    """The cumulative time that `-X importtime` tells for this module."""
    printed = run_python("-X", "importtime", "-c", f"import {module}").stderr
    line = re.search(rf"\|\s+(\d+) \| {module}$", printed, re.MULTILINE)
    if line is None:
        raise RuntimeError(f"-X importtime does not tell of {module}")
    return int(line[1]) / 1_000_000


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    yield laps_of(CONTESTANTS, lambda module: partial(seconds_to_import, module))


COMPARISON = Comparison(
    work="import",
    title="cumulative time of the import, in a fresh process each time",
    n=1,
    sized=False,
    rounds=15,
    laps=laps,
    ratios=tuple(Ratio(module, module, "asyncio") for module in MODULES),
    targets=(Target("handfast", "<=", 2.0),),
)
