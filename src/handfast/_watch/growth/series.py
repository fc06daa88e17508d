"""What is kept of one place of creation: a fixed number of samples for each age.

An `AgeSeries` watches the tasks older than one age, from 1,024 seconds on; each next one doubles it.
Its windows are as long as the age, with four samples in each. So a place is decided upon after 73
minutes at the earliest: what ends, or no longer grows, within an hour is never called a leak. Many
servers close each connection after half an hour or an hour, and before that none of them ends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, pairwise

from handfast._watch.growth.evidence import (
    LEAST,
    Point,
    Survival,
    most_stay,
    share_that_stays,
)

TICK = 256.0
"""Seconds between two samples."""

WINDOWS = 3
_PER_WINDOW = 4  # samples
_FIRST_AGE = TICK * _PER_WINDOW
_AGES = 5  # 1,024 s to 16,384 s
# `ages[i]` counts ages below 2**(i - 6) seconds, so the sum from `_FROM` on is what is older than
# `_FIRST_AGE`, that from the next one on what is older than twice that.
_FROM = int(_FIRST_AGE).bit_length() - 1 + 7
_QUARTER, _EIGHTH = 2, 3  # so many buckets before
# Of the tasks that are expected to stay, so many are enough to expect, and this part has to be seen.
_ENOUGH_TO_EXPECT = 3
_GOES_ON = 0.75
_SAMPLES = (WINDOWS + 1) * _PER_WINDOW + 1
_HISTORY = 24
# Fewer tasks than this part of what there were at the most are a creation that comes to its end.
_LESS = 0.75
# By how many seconds a sample may be late: the agent has a thread among others.
_LATE = TICK / 16


class AgeSeries:
    """The tasks of a place that are older than `age`."""

    def __init__(self, age: float, origin: Point) -> None:
        self.age = age
        # (time, created, older than `age`, older than twice that)
        self._samples: deque[tuple[float, int, int, int]] = deque(maxlen=_SAMPLES)
        # The beginning tells a cache that fills: it keeps the most tasks at first.
        self._history = [origin]
        self._spacing = 1
        self._taken = 1
        # How many are older than a quarter of `age`, and not older than that.
        self._lately = 0

    def add(self, now: float, created: int, lately: int, older: int, older_still: int) -> None:
        """Add a sample. It is due each quarter of `age`."""
        self._lately = lately
        if self._samples and abs(now - self._samples[-1][0] - self.age / _PER_WINDOW) > _LATE:
            # The process was suspended: what was older than `age` one window ago is not what is
            # older than twice that now.
            self._samples.clear()
        self._samples.append((now, created, older, older_still))
        if len(self._samples) > _PER_WINDOW:
            self._remember(self._point(-1))

    def _remember(self, point: Point) -> None:
        if self._taken % self._spacing == 0:
            self._history.append(point)
            if len(self._history) > _HISTORY:  # every second one, so that it reaches back as far
                self._history = self._history[::2]
                self._spacing *= 2
        self._taken += 1

    def survival(self) -> Survival | None:
        """What became of the older tasks in the last three windows; None if that is not known."""
        if len(self._samples) < _SAMPLES:
            return None
        samples = list(self._samples)
        watched = ended = 0
        for start in range(_PER_WINDOW, _SAMPLES - 1, _PER_WINDOW):
            older = samples[start][2]
            watched += older
            ended += max(0, older - samples[start + _PER_WINDOW][3])
        return Survival(watched, ended)

    def share(self) -> float | None:
        """The share of new tasks that stay, if it is steady. Only if there is a `survival`."""
        recent = [self._point(index) for index in range(_PER_WINDOW, _SAMPLES)]
        share = share_that_stays(recent, [*self._history, recent[-1]], self.age)
        if share is None or self._has_stopped(share):
            return None
        return None if most_stay(share) and self._creates_less() else share

    def _has_stopped(self, share: float) -> bool:
        """Whether far fewer stay of those created in the last window: a pool that has just filled.

        `older` shows that only a window later.
        """
        created = self._samples[-2][1] - self._samples[-1 - _PER_WINDOW][1]
        expected = share * created
        most = self._lately + math.sqrt(self._lately)
        return expected >= _ENOUGH_TO_EXPECT and most < _GOES_ON * expected

    def _creates_less(self) -> bool:
        """Whether far fewer tasks were created in the last half of a window than at the most.

        Where most tasks stay, it is the end of the growth.
        """
        created = [each[1] for each in self._samples][:: _PER_WINDOW // 2]
        new = [after - before for before, after in pairwise(created)]
        return new[-1] < _LESS * max(new)

    def has_ended(self) -> bool:
        """Whether most of many older tasks have ended in the last window, all at once or not."""
        if len(self._samples) <= _PER_WINDOW:
            return False
        older = self._samples[-1 - _PER_WINDOW][2]
        return older >= LEAST and self._samples[-1][3] < older / 2

    def rises(self) -> bool:
        """Whether there are more of the older tasks than three windows ago."""
        return self._samples[-1][2] > self._samples[_PER_WINDOW][2]

    def _point(self, index: int) -> Point:
        # What is older than `age` now was created up to one window ago.
        at, created, _, _ = self._samples[index - _PER_WINDOW]
        return Point(at, created, self._samples[index][2])


class PlaceSeries:
    """The samples of one place, by age."""

    def __init__(self, start: float) -> None:
        self._origin = Point(start, 0, 0)
        self._by_age: list[AgeSeries] = []
        self.created = 0
        """As of the last sample."""

    def add(self, tick: int, now: float, created: int, ages: Sequence[int]) -> list[AgeSeries]:
        """Add a sample; returns the series that have a new one."""
        self.created = created
        older = list(accumulate(reversed(ages)))[::-1]
        changed = []
        for index in range(_AGES):
            if tick % (1 << index):
                break
            if index == len(self._by_age):
                # An age that no task is about to reach needs no memory.
                if not older[_FROM + index - _EIGHTH]:
                    break
                self._by_age.append(AgeSeries(_FIRST_AGE * (1 << index), self._origin))
            series = self._by_age[index]
            first = _FROM + index
            lately = older[first - _QUARTER] - older[first]
            series.add(now, created, lately, older[first], older[first + 1])
            changed.append(series)
        return changed

    def ends_later(self, age: float) -> bool:
        """Whether tasks that have reached more than `age` are known to end."""
        for series in self._by_age:
            survival = series.survival() if series.age > age else None
            if survival is not None and survival.watched >= LEAST and not survival.is_endless():
                return True
        return False


def old_enough(ages: Sequence[int]) -> int:
    """How many tasks are old enough to be looked at."""
    return sum(ages[_FROM - _EIGHTH :])
