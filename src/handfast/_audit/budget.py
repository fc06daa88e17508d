"""The time of an audit, and how it is shared out.

The order is fixed: `check` runs first, because it needs seconds; the suite runs once, for at most
half of what is left; the explorer gets the rest.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SUITE_SHARE = 0.5
# For trying the commands that show a leak, as a share of what the suite gets.
TRY_SHARE = 0.2
# What a pytest run needs to start, to end its last test, and to write its results after Ctrl-C.
STARTING, STOPPING, ENDING = 1.0, 2.0, 3.0
# A test that takes longer hangs, as far as an audit of minutes is concerned.
_TEST_SECONDS = 30.0


@dataclass
class Budget:
    """Seconds from now on."""

    seconds: float
    began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - self.spent)

    def for_suite(self, *, alone: bool) -> float:
        """Seconds for the run of the suite; all that are left if no schedules follow."""
        half = self.left * SUITE_SHARE
        most = (self.left - STARTING - STOPPING - ENDING) / (1 + TRY_SHARE)
        return max(half, most) if alone else half

    def for_schedules(self, normal_run: float) -> float:
        """Seconds for the schedules, if the tests themselves take `normal_run` seconds."""
        return self.left - normal_run - STARTING - STOPPING - ENDING


def hang_limit(seconds: float) -> float:
    """Seconds after which one test of a run of so many seconds counts as hanging."""
    return min(_TEST_SECONDS, max(1.0, seconds / 3))
