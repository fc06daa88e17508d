"""Shared by the tests of the simulated threads: one normal run, and a walk over all schedules."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from handfast._explore.loop.virtual_clock import virtual_clocks
from handfast._explore.search.plan import Plan, Record, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import Logging, logs

# The ideal machine: fewer schedules, and every one of them is about the threads.
IDEAL = Settings(stall=0.0)


def once(
    program: Callable[[], Coroutine[Any, Any, object]], settings: Settings = IDEAL, **plan: Any
) -> Record:
    """One run, with the clocks that an exploration has."""
    with virtual_clocks():
        return run(program, Plan(observe=True, **plan), settings)


def every(program: Logging, settings: Settings = IDEAL) -> set[str]:
    """Every outcome of every schedule: the log and the verdict's code in one word."""
    with virtual_clocks():
        return logs(program, settings)
