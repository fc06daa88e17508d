"""A22: SIGINT and SIGTERM at random moments: no hang, no orphan, the exit code that a shell expects.

HANDFAST_RANDOM_SIGNALS=600 runs so many programs and HANDFAST_RANDOM_SEED=7 from that seed; with
`-o faulthandler_timeout=0`, or pytest ends a test that takes two minutes.
"""

from __future__ import annotations

import os

from tests.runtime.program.random_signals import problems
from tests.support.stepping import loop_kinds


def test_programs_end_well_whenever_signals_come() -> None:
    """Under handfast.run, asyncio.run and BackgroundLoop; one, two and three signals."""
    count = int(os.environ.get("HANDFAST_RANDOM_SIGNALS", "27"))
    seed = int(os.environ.get("HANDFAST_RANDOM_SEED", "1"))
    found = problems(count, seed, loop_kinds())
    assert found == [], f"HANDFAST_RANDOM_SEED={seed}"
