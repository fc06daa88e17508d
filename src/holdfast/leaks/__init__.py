"""Which code leaves something behind, and what.

The room, from the look to the words:

    judging            what is a leak
    settling, ending   time for what is on its way out; bounded rounds of cancel for what is not
    audit              all of that in its order
    meeting            the moment before a loop closes
    finding            a leak in words
    watching           a block that must leave nothing behind
    ignoring, baseline, summary   what is known already, and many leaks at once
    stressing          many runs, cancelled at random points: does anything grow?
    cancelling, outcomes          where a run is cancelled, and how it ended
    tally, rounds, trend          what is there after each round; whether that goes up and up
    stress_report, plot           the same in words, and as a picture
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.leaks.finding import Leak, LeakError
from holdfast.leaks.watching import Watch, watch

if TYPE_CHECKING:
    from holdfast.leaks.stress_report import StressReport
    from holdfast.leaks.stressing import stress

__all__ = ["Leak", "LeakError", "StressReport", "Watch", "stress", "watch"]


def __getattr__(name: str) -> Any:
    """A test run needs no stress: only who asks for it loads it."""
    if name == "stress":
        from holdfast.leaks import stressing

        return stressing.stress
    if name == "StressReport":
        from holdfast.leaks import stress_report

        return stress_report.StressReport
    raise AttributeError(f"module 'holdfast.leaks' has no attribute {name!r}")
