"""`GrowthDetector`: which places of creation leak, from counts that the agent takes each second."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from handfast._watch.growth.evidence import LEAST, p_value, unlikely_by_chance
from handfast._watch.growth.series import (
    TICK,
    WINDOWS,
    AgeSeries,
    PlaceSeries,
    old_enough,
)
from handfast._watch.growth.space_saving import SpaceSaving
from handfast._watch.snapshot import Growth

MOST_PLACES = 4096

# Of a thousand places that are called a leak, how many may be called so by chance.
_FALSE = 0.001
# For so many seconds: a service may close its connections once a day.
_REMEMBERED = 36 * 3600.0


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """A line that creates tasks, at one moment."""

    place: Hashable
    created: int
    """Since the watch began."""
    alive: int
    ages: Sequence[int]
    """How many of the live tasks are how old: `snapshot.AGE_BUCKETS` numbers."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A place that is called a leak, since when, and by which of its series."""

    since: float
    age: float
    share: float
    windows: int = WINDOWS


@dataclass(frozen=True, slots=True)
class _Suspect:
    place: Hashable
    series: AgeSeries
    share: float
    p: float


class GrowthDetector:
    """Tells a leak from load.

    >>> detector = GrowthDetector()
    >>> for now in range(0, 8192, 256):
    ...     ages = [0] * 24
    ...     for since in range(32, now, 64):  # each second, 100 tasks are created and one stays
    ...         ages[since.bit_length() + 6] += 64
    ...     detector.observe(now, [PlaceCount("a.py:1", 100 * now, now, ages)])
    >>> detector.growth_of("a.py:1")
    Growth(per_thousand=10.0, windows=6)
    """

    def __init__(self) -> None:
        self._series: dict[Hashable, PlaceSeries] = {}
        # By the number of tasks that got old: the places to keep if there are too many.
        self._heaviest: SpaceSaving[Hashable] = SpaceSaving(MOST_PLACES)
        self._calls: dict[Hashable, _Call] = {}
        # At what age tasks of a place have ended in numbers, and until when that counts.
        self._ended: dict[Hashable, tuple[float, float]] = {}
        self._start = 0.0
        self._tick = -1

    def observe(self, now: float, counts: Iterable[PlaceCount]) -> None:
        """Take the counts of a moment; `now` is a monotonic clock. Call it about once a second.

        Most calls return at once, without reading `counts`: a sample is due each 256 seconds.
        """
        if self._tick < 0:
            self._start = now
        tick = int((now - self._start) / TICK)
        if tick <= self._tick:
            return
        self._tick = tick
        changed = self._add(tick, now, counts)
        self._note_ends(now, changed)
        self._drop(now, changed)
        self._call(now, changed)

    def growth_of(self, place: Hashable) -> Growth | None:
        """The growth of a place; None if its tasks do not leak, or if that is not known yet."""
        call = self._calls.get(place)
        return None if call is None else Growth(1000 * call.share, call.windows)

    def _add(
        self, tick: int, now: float, counts: Iterable[PlaceCount]
    ) -> list[tuple[Hashable, AgeSeries]]:
        """Store the samples; returns the series that are to be judged again."""
        changed = []
        for count in counts:
            old = old_enough(count.ages)
            if not old or count.created < self._created(count.place):
                self._forget(count.place)
                if not old:
                    continue
            series = self._series_of(count.place, old)
            changed += [
                (count.place, each) for each in series.add(tick, now, count.created, count.ages)
            ]
        return changed

    def _created(self, place: Hashable) -> int:
        series = self._series.get(place)
        return series.created if series is not None else 0

    def _series_of(self, place: Hashable, old: int) -> PlaceSeries:
        dropped = self._heaviest.add(place, old)
        if dropped is not None:
            del self._series[dropped]
            self._calls.pop(dropped, None)
        return self._series.setdefault(place, PlaceSeries(self._start))

    def _forget(self, place: Hashable) -> None:
        if self._series.pop(place, None) is not None:
            self._heaviest.remove(place)
            self._calls.pop(place, None)

    def _note_ends(self, now: float, changed: list[tuple[Hashable, AgeSeries]]) -> None:
        """A line whose connections are all closed now and then is not called each time anew."""
        self._ended = {place: last for place, last in self._ended.items() if last[1] > now}
        for place, series in changed:
            if series.has_ended():
                age, _ = self._ended.get(place, (0.0, 0.0))
                self._ended[place] = max(age, series.age), now + _REMEMBERED

    def _drop(self, now: float, changed: list[tuple[Hashable, AgeSeries]]) -> None:
        """Keep a call while the older tasks do not end and grow in number."""
        for place, series in changed:
            call = self._calls.get(place)
            survival = series.survival()
            if call is None or series.age < call.age or survival is None:
                continue
            if series.age > call.age:
                goes_on = survival.watched < LEAST or survival.is_endless()
            else:
                goes_on = survival.is_endless() and series.rises()
            if goes_on:
                windows = WINDOWS + int((now - call.since) / call.age)
                self._calls[place] = _Call(call.since, call.age, call.share, windows)
            else:
                del self._calls[place]

    def _call(self, now: float, changed: list[tuple[Hashable, AgeSeries]]) -> None:
        suspects: list[_Suspect] = []
        innocent = 0
        for place, series in changed:
            survival = series.survival()
            if survival is None or survival.watched < LEAST:
                continue
            share = series.share() if survival.is_endless() else None
            ended = self._ended.get(place, (0.0, 0.0))
            if (
                share is None
                or series.age <= ended[0]
                or self._series[place].ends_later(series.age)
            ):
                innocent += 1
            else:
                p = p_value(survival, series.age, share)
                suspects.append(_Suspect(place, series, share, p))
        accepted = unlikely_by_chance([each.p for each in suspects] + [1.0] * innocent, _FALSE)
        for each in suspects:
            if each.p <= accepted and each.place not in self._calls:
                self._calls[each.place] = _Call(now, each.series.age, each.share)
