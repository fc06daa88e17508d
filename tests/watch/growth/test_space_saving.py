"""The heaviest keys are present whatever else comes, and the memory is bounded."""

from __future__ import annotations

from random import Random

import pytest

from handfast._watch.growth.space_saving import SpaceSaving


def test_a_heavy_key_is_present_and_its_weight_is_within_the_bound() -> None:
    random = Random(1)
    stream = [f"rare {random.randrange(10_000)}" for _ in range(4000)] + ["heavy"] * 400
    random.shuffle(stream)
    summary: SpaceSaving[str] = SpaceSaving(50)
    for key in stream:
        summary.add(key)
        assert len(summary) <= 50
    assert "heavy" in summary
    assert summary.weight("heavy") - summary.overstated("heavy") <= 400 <= summary.weight("heavy")
    for key in summary:
        assert summary.weight(key) - summary.overstated(key) <= stream.count(key)


def test_a_removed_key_makes_place() -> None:
    summary: SpaceSaving[str] = SpaceSaving(1)
    summary.add("a", 5)
    summary.remove("a")
    assert summary.add("b") is None
    assert summary.weight("b") == 1
    assert summary.add("c") == "b"


def test_the_capacity_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        SpaceSaving(0)
