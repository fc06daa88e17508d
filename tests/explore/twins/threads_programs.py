"""What the tests of the thread twin share: one run in the plain order, and a walk over all."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.explore.clocks import virtual_clocks
from holdfast.explore.plan import Plan, Record, Settings
from holdfast.explore.run import run
from tests.explore.walk import Logging, logs

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
