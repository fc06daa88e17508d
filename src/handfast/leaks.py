"""Find what code leaks: tasks, timers, generators, threads, processes, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast._census.kinds.closables import register
from handfast._leaks.leak import Leak, LeakError
from handfast._leaks.no_leaks import NoLeaks, no_leaks
from handfast._public_names import load_on_use, publish

if TYPE_CHECKING:
    from handfast._leaks.stress.report import StressReport
    from handfast._leaks.stress.stress import stress

__all__ = ["Leak", "LeakError", "NoLeaks", "StressReport", "no_leaks", "register", "stress"]

publish(__name__, [Leak, LeakError, NoLeaks, no_leaks, register])

# A test run does not need `stress`.
__getattr__ = load_on_use(
    __name__,
    {
        "StressReport": "handfast._leaks.stress.report",
        "stress": "handfast._leaks.stress.stress",
    },
)
