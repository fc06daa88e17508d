"""The trend over many samples: a leak grows, the noise of an allocator or a pool does not."""

from __future__ import annotations

import random

import pytest

from handfast._trend import Sample, grows, growth


def series(*values: float) -> list[Sample]:
    return [(1000.0 * index, value) for index, value in enumerate(values)]


def leak(lots: random.Random, rate: float, rounds: int = 20, runs: int = 50) -> list[Sample]:
    """What is there after each round, if one run in so many leaves something."""
    left, values = 0, [0.0]
    for _ in range(rounds):
        left += sum(lots.random() < rate for _ in range(runs))
        values.append(left)
    return series(*values)


# --- how much ----------------------------------------------------------------------------------


def test_a_leak_is_reported_however_noisy() -> None:
    assert growth(series(*(10 * i + (-1) ** i * 30 for i in range(40)))) == pytest.approx(390, 0.2)


def test_a_single_step_is_no_growth() -> None:
    assert growth(series(*[100] * 5, *[900] * 15)) == 0
    assert growth(series(*[100] * 15, *[900] * 5)) == 0


def test_a_burst_is_no_growth() -> None:
    assert growth(series(*[100] * 10, 900, *[100] * 10)) == 0


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples show no trend"):
        growth(series(1, 2, 3))


# --- whether at all ----------------------------------------------------------------------------


def test_an_object_in_each_run_grows_and_so_does_one_in_fifty() -> None:
    lots = random.Random(1)
    assert grows(series(*range(8)))
    assert all(grows(leak(lots, 1 / 20)) for _ in range(50))
    assert sum(grows(leak(lots, 1 / 50)) for _ in range(100)) > 90


def test_one_object_in_a_thousand_runs_is_reported_after_twenty_thousand() -> None:
    lots = random.Random(2)
    assert sum(grows(leak(lots, 1 / 1000, runs=1000)) for _ in range(20)) >= 16


@pytest.mark.parametrize("fills_at", [1, 3, 9], ids=str)
def test_a_pool_that_fills_once_does_not_grow(fills_at: int) -> None:
    assert not grows(series(*(10 * min(1, each / fills_at) for each in range(21))))


def test_a_pool_with_a_late_record_or_two_does_not_grow() -> None:
    assert not grows(series(*[4] * 7, *[5] * 7, *[6] * 7))
    lots = random.Random(3)
    found = 0
    for _ in range(300):
        # As many connections as were ever in use at once: each record is harder to beat.
        most, values = 0.0, []
        for _ in range(21):
            most = max(most, *(lots.expovariate(1) for _ in range(5)))
            values.append(int(2 * most))
        found += grows(series(*values))
    assert found <= 6


def test_noise_does_not_grow() -> None:
    lots = random.Random(4)
    found = sum(grows(series(*(lots.randint(0, 9) for _ in range(21)))) for _ in range(1000))
    assert found <= 3


def test_what_shrinks_does_not_grow() -> None:
    assert not grows(series(*reversed(range(20))))
