"""Leaks are called and load is not, in simulated services.

HANDFAST_GROWTH_RUNS and HANDFAST_RANDOM_SEED ask for more runs, or others; `services.py` prints the
rates and the delays.
"""

from __future__ import annotations

import os

import pytest

from tests.watch.growth.services import LEAKS, RIGHT, first_call

RUNS = int(os.environ.get("HANDFAST_GROWTH_RUNS", "10"))
SEED = int(os.environ.get("HANDFAST_RANDOM_SEED", "1"))
# In minutes: three windows, as long as there are few requests.
LATEST = {"1 in 100 of 1 a second": 240, "each of 0.1 a second": 240}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_called(name: str) -> None:
    for seed in range(SEED, SEED + max(1, RUNS // 2)):
        called_at = first_call(LEAKS[name], seed)
        assert called_at is not None, f"seed {seed}"
        assert called_at <= 60 * LATEST.get(name, 120), f"seed {seed}"


@pytest.mark.parametrize("name", RIGHT)
def test_load_is_not_called_a_leak(name: str) -> None:
    alarms = [seed for seed in range(SEED, SEED + RUNS) if first_call(RIGHT[name], seed)]
    assert len(alarms) <= RUNS // 100, f"seeds {alarms}"
