"""The soak's verdict: a leak is told, the unrest of an allocator is not."""

from __future__ import annotations

import pytest

from benchmarks.growth import Sample, growth


def series(*values: float) -> list[Sample]:
    return [(1000.0 * index, value) for index, value in enumerate(values)]


def test_a_leak_is_told_however_noisy() -> None:
    assert growth(series(*(10 * i + (-1) ** i * 30 for i in range(40)))) == pytest.approx(390, 0.2)


def test_a_single_step_is_no_growth() -> None:
    assert growth(series(*[100] * 5, *[900] * 15)) == 0
    assert growth(series(*[100] * 15, *[900] * 5)) == 0


def test_a_burst_is_no_growth() -> None:
    assert growth(series(*[100] * 10, 900, *[100] * 10)) == 0


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples tell no trend"):
        growth(series(1, 2, 3))
