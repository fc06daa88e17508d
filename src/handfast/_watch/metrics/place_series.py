"""Tasks by place, as series whose number is bounded: `MOST_PLACES` places, and `other`.

Which places have series of their own changes with time: those that grow, then those with most tasks. A
counter must never go down, also when a place loses its series to another one. So what was created
between two readings is added to the series that the place has at that time, and stays there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from handfast._watch.agent import agent, serving
from handfast._watch.snapshot import AGE_BUCKETS, CreationPlace, Snapshot
from handfast._watch.views.cells import printable

MOST_PLACES = 50
OTHER = "other"

_BOUNDS = range(6, AGE_BUCKETS - 1, 2)
BOUNDS = (*(str(2 ** (index - 6)) for index in _BOUNDS), "+Inf")
"""The upper bounds of the ages, in seconds: 1, 4, 16 ... and no bound."""

_FRESH = 1.0
"""A reading is used again for so many seconds: one scrape asks for several metrics."""


@dataclass(slots=True)
class PlaceMetrics:
    """What the series of one place show."""

    alive: int = 0
    created: int = 0
    finished: int = 0
    per_thousand: float = 0.0
    """How many of a thousand new tasks stay, if the place grows."""
    ages: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))
    """How many tasks are younger than each of `BOUNDS`."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All series at one moment."""

    snapshot: Snapshot
    places: dict[str, PlaceMetrics]

    @property
    def lag(self) -> dict[str, float]:
        """The lag of the slowest loop in seconds, by quantile."""
        loops = self.snapshot.loops
        return {
            "0.5": max((each.lag_p50 or 0.0 for each in loops), default=0.0) / 1000,
            "0.99": max((each.lag_p99 or 0.0 for each in loops), default=0.0) / 1000,
            "1": max((each.lag_worst or 0.0 for each in loops), default=0.0) / 1000,
        }

    @property
    def blocked_for(self) -> float:
        """For how many seconds a callback has held up a loop; the longest."""
        return max((each.blocked_for for each in self.snapshot.loops), default=0.0)

    @property
    def kept(self) -> int:
        """How many finished tasks are kept."""
        return sum(each.count for each in self.snapshot.kept)

    @property
    def never_wakes(self) -> int:
        """How many tasks nothing can wake."""
        return sum(each.count for each in self.snapshot.never_wakes)


def summary_here() -> Snapshot:
    """A summary of this process; without places if it is not watched."""
    running = agent.current()
    return serving.snapshot(0) if running is None else running.summary()


class PlaceReader:
    """Reads the series; from several threads, if there are several scrapers."""

    def __init__(
        self,
        read: Callable[[], Snapshot] = summary_here,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._totals: dict[str, tuple[int, int]] = {}
        self._seen: dict[int, tuple[int, int]] = {}
        self._last: Reading | None = None
        self._until = 0.0

    def reading(self) -> Reading:
        """The series now, or a moment ago."""
        with self._lock:
            if self._last is None or self._clock() >= self._until:
                self._last = self._new_reading(self._read())
                self._until = self._clock() + _FRESH
            return self._last

    def _new_reading(self, snapshot: Snapshot) -> Reading:
        places = {OTHER: PlaceMetrics()}
        chosen = {each.id for each in _first(snapshot)}
        for place in snapshot.places:
            label = printable(str(place)) if place.id in chosen else OTHER
            self._count(label, place)
            _add(places.setdefault(label, PlaceMetrics()), place)
        # What was counted before stays in the series, and is shown while they are.
        for label, series in places.items():
            series.created, series.finished = self._totals.get(label, (0, 0))
        self._seen = {each.id: (each.created, each.finished) for each in snapshot.places}
        return Reading(snapshot, places)

    def _count(self, label: str, place: CreationPlace) -> None:
        """Add what is new at a place since the last reading."""
        created, finished = self._seen.get(place.id, (0, 0))
        total_created, total_finished = self._totals.get(label, (0, 0))
        self._totals[label] = (
            total_created + max(0, place.created - created),
            total_finished + max(0, place.finished - finished),
        )


def _first(snapshot: Snapshot) -> list[CreationPlace]:
    """The places that have series of their own."""
    by_size = sorted(
        snapshot.places, key=lambda each: (each.growth is None, -each.alive, -each.created)
    )
    return by_size[:MOST_PLACES]


def _add(series: PlaceMetrics, place: CreationPlace) -> None:
    series.alive += place.alive
    if place.growth is not None:
        series.per_thousand = max(series.per_thousand, place.growth.per_thousand)
    for number, index in enumerate(_BOUNDS):
        series.ages[number] += sum(place.ages[: index + 1])
    series.ages[-1] += place.alive
