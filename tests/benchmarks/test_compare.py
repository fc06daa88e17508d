"""Every comparison runs and says what it promises. How fast anything is, is not judged here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks.comparison import Comparison, Contestant, Lap, Laps, Ratio, Target, laps_of
from benchmarks.comparisons import TABLE, comparison_of
from benchmarks.fresh_process import run_python
from benchmarks.measuring import interleave, measure
from benchmarks.presenting import as_json, as_text


def compared(*arguments: str) -> Any:
    return json.loads(run_python("-m", "benchmarks.compare", *arguments, "--json").stdout)


# What `check` reads is downloaded first: `nox -s bench` does that.
@pytest.mark.parametrize("work", [work for work in TABLE if work != "check"])
def test_each_comparison_prints_every_ratio_as_json(work: str) -> None:
    report = compared(work, "--rounds", "1", "--n", "20")
    comparison = comparison_of(work)
    absent = set(report["not_measured"])
    assert report["work"] == work
    assert set(report["ratios"]) == {
        ratio.name for ratio in comparison.ratios if not {ratio.of, ratio.over} & absent
    }
    assert set(report["targets"]) == {target.ratio for target in comparison.targets}
    assert report["met"] is all(target["met"] for target in report["targets"].values())
    assert not any(name.startswith("handfast") for name in absent)


CONTESTANTS = (
    Contestant("here", 2.0),
    Contestant("elsewhere", 1.0, needs="a_peer_that_is_not_installed"),
)


@contextmanager
def laps(n: int) -> Iterator[Laps]:
    yield laps_of(CONTESTANTS, lambda figure: lambda: figure)


def test_a_peer_that_is_not_installed_is_named_and_its_target_missed() -> None:
    comparison = Comparison(
        work="example",
        title="{n} examples",
        n=3,
        rounds=1,
        laps=laps,
        ratios=(Ratio("here", "here", "here"), Ratio("faster", "here", "elsewhere")),
        targets=(Target("here", "<=", 1.0), Target("faster", ">=", 0.0)),
    )
    outcome = measure(comparison, None, None, lambda text: None)
    report = as_json(outcome)
    assert report["not_measured"] == ["elsewhere"]
    assert report["ratios"] == {"here": 1.0}
    assert [target["met"] for target in report["targets"].values()] == [True, False]
    assert not report["met"]
    assert "not measured" in as_text(outcome)


def test_rounds_are_interleaved_and_the_first_does_not_count() -> None:
    ran = []

    def lap(name: str, *figures: float) -> Lap:
        left = iter(figures)

        def run() -> float:
            ran.append(name)
            return next(left)

        return run

    report = interleave({"A": lap("A", 1, 3, 2), "B": lap("B", 9, 5, 5)}, 2, lambda text: None)
    assert "".join(ran) == "ABABAB"
    assert (report["A"].best, report["A"].median) == (2, 2.5)
