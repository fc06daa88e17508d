"""What the detector does with its samples: when it reads, what it forgets, when a call ends."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from handfast._watch.growth import GrowthDetector, PlaceCount
from handfast._watch.growth import detector as detector_module
from handfast._watch.growth.detector import MOST_PLACES
from handfast._watch.growth.evidence import Survival, p_value, unlikely_by_chance
from handfast._watch.snapshot import AGE_BUCKETS

TICK = 256.0
LONG_ENOUGH = 28


class Line:
    """A line with 6,400 tasks in each tick, of which 64 stay."""

    def __init__(self, name: str = "line") -> None:
        self.name = name
        self.created = 0
        self.stay: list[float] = []

    def count(self, now: float, staying: int = 64) -> PlaceCount:
        self.created += 6400
        self.stay += [now - TICK * part / staying for part in range(staying)]
        ages = [0] * AGE_BUCKETS
        for at in self.stay:
            ages[min(AGE_BUCKETS - 1, int(max(0.0, now - at)).bit_length() + 6)] += 1
        return PlaceCount(self.name, self.created, len(self.stay), ages)


def watched(line: Line, ticks: int = LONG_ENOUGH) -> GrowthDetector:
    detector = GrowthDetector()
    for tick in range(ticks):
        detector.observe(TICK * tick, [line.count(TICK * tick)])
    return detector


def test_a_leak_is_called_with_its_rate_and_goes_on() -> None:
    line = Line()
    detector = watched(line)
    growth = detector.growth_of("line")
    assert growth is not None
    assert growth.per_thousand == pytest.approx(10, rel=0.05)
    assert growth.windows == 3 + (LONG_ENOUGH - 18) // 4
    assert detector.growth_of("another line") is None


def test_a_call_ends_when_nothing_more_is_added() -> None:
    line = Line()
    detector = watched(line)
    for tick in range(LONG_ENOUGH, 2 * LONG_ENOUGH):
        detector.observe(TICK * tick, [line.count(TICK * tick, staying=0)])
    assert detector.growth_of("line") is None


def test_a_call_ends_when_the_tasks_end_after_all() -> None:
    line = Line()
    detector = watched(line)
    line.stay = line.stay[-300:]
    for tick in range(LONG_ENOUGH, LONG_ENOUGH + 4):
        detector.observe(TICK * tick, [line.count(TICK * tick)])
    assert detector.growth_of("line") is None


@pytest.mark.parametrize(("remembered", "called"), [(36 * 3600.0, False), (20 * TICK, True)])
def test_a_line_whose_tasks_ended_all_at_once_is_not_called_so_soon_again(
    monkeypatch: pytest.MonkeyPatch, remembered: float, called: bool
) -> None:
    """As where all connections are closed every few hours."""
    monkeypatch.setattr(detector_module, "_REMEMBERED", remembered)
    line = Line()
    detector = watched(line)
    line.stay = []
    for tick in range(LONG_ENOUGH, LONG_ENOUGH + 50):
        detector.observe(TICK * tick, [line.count(TICK * tick)])
    assert (detector.growth_of("line") is not None) is called


def test_a_call_ends_when_all_tasks_are_gone() -> None:
    line = Line()
    detector = watched(line)
    line.stay = []
    detector.observe(TICK * LONG_ENOUGH, [line.count(TICK * LONG_ENOUGH)])
    assert detector.growth_of("line") is None


def test_a_place_that_starts_again_is_watched_anew() -> None:
    line = Line()
    detector = watched(line)
    line.created = 0
    detector.observe(TICK * LONG_ENOUGH, [line.count(TICK * LONG_ENOUGH)])
    assert detector.growth_of("line") is None


def test_after_a_pause_of_the_process_three_new_windows_are_needed() -> None:
    line = Line()
    detector = watched(line, ticks=12)
    for tick in range(20, 36):
        detector.observe(TICK * tick, [line.count(TICK * tick)])
        assert detector.growth_of("line") is None
    for tick in range(36, 44):
        detector.observe(TICK * tick, [line.count(TICK * tick)])
    assert detector.growth_of("line") is not None


def test_the_counts_are_read_once_in_256_seconds() -> None:
    reads: list[float] = []

    def counts(now: float) -> Iterator[PlaceCount]:
        reads.append(now)
        yield PlaceCount("place", 1, 1, [0] * AGE_BUCKETS)

    detector = GrowthDetector()
    for second in range(800):
        detector.observe(float(second), counts(float(second)))
    assert reads == [0.0, 256.0, 512.0, 768.0]


def test_the_memory_is_bounded() -> None:
    ages = [0] * AGE_BUCKETS
    ages[14:23] = [1] * 9

    def taken(ticks: int) -> tuple[GrowthDetector, int]:
        tracemalloc.start()
        detector = GrowthDetector()
        for tick in range(ticks):
            # Some lines with many old tasks, and ever new lines, more than there is place for.
            heavy = [PlaceCount(("heavy", n), tick, 500, [50] * AGE_BUCKETS) for n in range(20)]
            light = [PlaceCount((tick, n), 1, 1, ages) for n in range(MOST_PLACES // 2)]
            detector.observe(TICK * tick, heavy + light)
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return detector, size

    _, before = taken(3)
    detector, after = taken(6)
    assert after < before * 1.5
    assert len(detector._series) == MOST_PLACES
    assert all(("heavy", n) in detector._series for n in range(20))


def test_few_that_do_not_end_say_little() -> None:
    assert p_value(Survival(20, 0), 256, 0.01) > 0.5
    assert p_value(Survival(400, 0), 256, 0.01) < 0.001
    # If most tasks stay, a longer lifetime must be excluded.
    assert p_value(Survival(400, 0), 256, 0.9) > 0.01
    assert p_value(Survival(5, 5), 256, 0.01) == pytest.approx(1.0)


def test_with_many_places_more_is_needed() -> None:
    assert unlikely_by_chance([0.0009], 0.001) == 0.0009
    assert unlikely_by_chance([0.0009] + [1.0] * 99, 0.001) == 0.0
    assert unlikely_by_chance([0.0009] * 99 + [1.0], 0.001) == 0.0009
    assert unlikely_by_chance([], 0.001) == 0.0
