"""Simulated services for the growth detector, in virtual time and with a seed.

A task that ends within a minute never reaches the detector's youngest age, so only their number
is simulated; each longer one has a time of creation and of its end.

    python tests/watch/growth/services.py [runs]     # detection rate, delay and false alarms
"""

from __future__ import annotations

import heapq
import math
import sys
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from handfast._watch.growth import GrowthDetector, PlaceCount
from handfast._watch.snapshot import AGE_BUCKETS

STEP = 32.0
EDGES = [2.0 ** (i - 6) for i in range(AGE_BUCKETS - 1)]
FOREVER = math.inf
Lifetime = Callable[[float], float]
"""The lifetime of a task by the time of its creation; 0 for one that ends within a minute."""


@dataclass
class Place:
    """The tasks of one line."""

    random: Random
    created: int = 0
    short: int = 0
    _alive: list[float] = field(default_factory=list)
    _ends: list[tuple[float, float]] = field(default_factory=list)

    def create(self, at: float, lifetime: float) -> None:
        self.created += 1
        if lifetime > 60.0:
            insort(self._alive, at)
            if lifetime < FOREVER:
                heapq.heappush(self._ends, (at + lifetime, at))

    def count(self, now: float) -> PlaceCount:
        while self._ends and self._ends[0][0] <= now:
            _, at = heapq.heappop(self._ends)
            del self._alive[bisect_right(self._alive, at) - 1]
        # Those of at most such an age: the list is in the order of creation.
        younger = [0, *(len(self._alive) - bisect_right(self._alive, now - edge) for edge in EDGES)]
        younger.append(len(self._alive))
        ages = [after - before for before, after in pairwise(younger)]
        ages[3] += self.short
        return PlaceCount("place", self.created, len(self._alive) + self.short, ages)


@dataclass(frozen=True)
class Service:
    """Requests arrive at `rate(t)` a second; `stays(t, random)` is how long one of the few lives
    that last for more than a minute, which are `share(t)` of all."""

    hours: float
    rate: Callable[[float], float]
    share: Callable[[float], float]
    stays: Callable[[Random, float], float]
    extra: Callable[[Random], list[tuple[float, float]]] = lambda random: []
    """More tasks: (created at, lifetime)."""


def first_call(service: Service, seed: int) -> float | None:
    """When the detector calls the place a leak; None if it never does."""
    random = Random(seed)
    place, detector = Place(random), GrowthDetector()
    extra = sorted(service.extra(random))
    now, due = 0.0, 0
    detector.observe(now, [])
    while now < service.hours * 3600:
        rate = service.rate(now)
        arrived = poisson(random, rate * STEP)
        share = service.share(now)
        longer = arrived if share == 1 else min(arrived, poisson(random, rate * STEP * share))
        place.created += arrived - longer
        place.short = poisson(random, rate * 0.3)
        for at in sorted(now + random.random() * STEP for _ in range(longer)):
            place.create(at, service.stays(random, at))
        now += STEP
        while due < len(extra) and extra[due][0] <= now:
            place.create(*extra[due])
            due += 1
        detector.observe(now + random.random(), [place.count(now)])
        if detector.growth_of("place") is not None:
            return now
    return None


def poisson(random: Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(random.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, random.random()
    while product > limit:
        product *= random.random()
        count += 1
    return count


# --- the services --------------------------------------------------------------------------------


def always(value: float) -> Callable[[float], float]:
    return lambda t: value


def forever(random: Random, t: float) -> float:
    return FOREVER


def wave(mean: float) -> Callable[[float], float]:
    return lambda t: mean * (1 - 0.9 * math.cos(2 * math.pi * t / 86400))


def lognormal(median: float, sigma: float) -> Callable[[Random, float], float]:
    return lambda random, t: 1e-9 + random.lognormvariate(math.log(median), sigma)


def pareto(shape: float, least: float) -> Callable[[Random, float], float]:
    return lambda random, t: least * random.paretovariate(shape)


def ramp(t: float) -> float:
    """From 10 to 1,000 a second in half an hour, and then on at that."""
    return min(1000.0, 10 + t * 990 / 1800)


def cache(size: float, rate: float) -> Service:
    """A task for each key that was not seen before; the keys are drawn at random."""
    return Service(6, always(rate), lambda t: math.exp(-t * rate / size), forever)


def only_misses(size: float, rate: float) -> Service:
    """The same, and only a miss creates a task."""
    return Service(6, lambda t: rate * math.exp(-t * rate / size), always(1.0), forever)


def popular_keys(rate: float, power: float) -> Service:
    """Keys with a popularity as words have it: new ones are ever rarer, but never run out."""
    return Service(8, always(rate), lambda t: 0.5 * (1 + t * rate) ** (power - 1), forever)


def batches(every: float, size: int, least: float, most: float) -> Service:
    def extra(random: Random) -> list[tuple[float, float]]:
        return [
            (start + random.random(), random.uniform(least, most))
            for start in _steps(every, 8 * 3600)
            for _ in range(size)
        ]

    return Service(8, always(0.1), always(0.0), forever, extra)


def burst(at: float, size: int, lasts: float) -> Service:
    def extra(random: Random) -> list[tuple[float, float]]:
        return [(at + random.random() * 10, random.random() * lasts) for _ in range(size)]

    return Service(3, always(20), always(0.0), forever, extra)


def pool(size: int, within: float) -> Service:
    def extra(random: Random) -> list[tuple[float, float]]:
        return [(random.random() * within, FOREVER) for _ in range(size)]

    return Service(3, always(20), always(0.0), forever, extra)


def consumers(size: int, within: float) -> Service:
    """A line that only creates tasks which stay, until all of them are there."""

    def extra(random: Random) -> list[tuple[float, float]]:
        return [(random.random() * within, FOREVER) for _ in range(size)]

    return Service(8, always(0.0), always(0.0), forever, extra)


def office(people: int) -> Service:
    """All come within two hours, and stay for eight."""

    def extra(random: Random) -> list[tuple[float, float]]:
        return [
            (3 * 3600 + random.gauss(0, 1800), 8 * 3600 + random.gauss(0, 3600))
            for _ in range(people)
        ]

    return Service(15, always(0.0), always(0.0), forever, extra)


def ramp_of_connections(
    size: int, within: float, hours: float, stay: float, requests: float
) -> Service:
    """Clients connect one after the other, stay for hours, and come back; among short requests."""

    def extra(random: Random) -> list[tuple[float, float]]:
        found = []
        for _ in range(size):
            at = random.random() * within
            while at < hours * 3600:
                lifetime = random.lognormvariate(math.log(stay), 0.5)
                found.append((at, lifetime))
                at += lifetime + random.random() * 10
        return found

    return Service(hours, always(requests), always(0.0), forever, extra)


def closed_together(rate: float, every: float, hours: float) -> Service:
    """Connections among requests: all of them are closed at once, now and then."""

    def extra(random: Random) -> list[tuple[float, float]]:
        found, at = [], 0.0
        while at < hours * 3600:
            at += random.expovariate(rate)
            found.append((at, every - at % every))
        return found

    return Service(hours, always(5), always(0.0), forever, extra)


def deploys(clients: int, every: float, within: float) -> Service:
    """All clients are disconnected by each restart of another server, and come back."""

    def extra(random: Random) -> list[tuple[float, float]]:
        found = []
        for start in [0.0, *_steps(every, 8 * 3600)]:
            for _ in range(clients):
                late = random.random() * within
                found.append((start + late, every - late + random.random() * 5))
        return found

    return Service(8, always(5), always(0.0), forever, extra)


def drift(share: float, stays: Callable[[Random, float], float]) -> Service:
    """From 1 to 50 a second within ten hours."""
    return Service(10, lambda t: 1 + t * 49 / 36_000, always(share), stays)


def exactly(seconds: float) -> Callable[[Random, float], float]:
    """A connection that the server closes after a fixed time."""
    return lambda random, t: seconds


def _steps(every: float, until: float) -> Iterator[float]:
    at = every
    while at < until:
        yield at
        at += every


LEAKS = {
    "1 in 100 of 10 a second": Service(3, always(10), always(0.01), forever),
    "1 in 100 of 100 a second": Service(3, always(100), always(0.01), forever),
    "1 in 100 of 1 a second": Service(12, always(1), always(0.01), forever),
    "1 in 100, in a daily wave": Service(12, wave(50), always(0.01), forever),
    "1 in 100, load from 10 to 1,000": Service(3, ramp, always(0.01), forever),
    "1 in 1,000 of 100 a second": Service(3, always(100), always(0.001), forever),
    "each of 0.1 a second": Service(8, always(0.1), always(1.0), forever),
}
RIGHT = {
    "load from 10 to 1,000 a second": Service(2, ramp, always(0.0), forever),
    "the same, requests of up to minutes": Service(2, ramp, always(0.002), lognormal(90, 0.5)),
    "burst of 5,000 that takes 20 minutes": burst(1200, 5000, 1200),
    "daily wave": Service(30, wave(5), always(0.02), lognormal(180, 0.7)),
    "pool of 50 at the start": pool(50, 10),
    "pool of 100 that fills in 30 minutes": pool(100, 1800),
    "100 consumers, started within 3 hours": consumers(100, 3 * 3600),
    "office of 200, for 8 hours": office(200),
    "cache of 2,000 at 10 a second": cache(2000, 10),
    "cache of 20,000 at 10 a second": cache(20_000, 10),
    "cache, tasks for misses only": only_misses(10_000, 2),
    "keys as popular as words": popular_keys(10, 0.6),
    "sessions, median 10 minutes": Service(8, always(0.2), always(1.0), lognormal(600, 1.5)),
    "sessions, median 1 hour": Service(12, always(0.1), always(1.0), lognormal(3600, 1.5)),
    "sessions, Pareto 0.8": Service(12, always(0.2), always(1.0), pareto(0.8, 60)),
    "sessions among requests": Service(8, always(20), always(0.02), lognormal(1200, 1.5)),
    "500 jobs each 10 minutes": batches(600, 500, 30, 540),
    "200 jobs an hour": batches(3600, 200, 60, 3300),
    "500 connect within an hour, for 6 hours": ramp_of_connections(500, 3600, 8, 21_600, 0),
    "the same among requests": ramp_of_connections(500, 3600, 8, 21_600, 20),
    "connections that end after 30 minutes": Service(8, always(5), always(0.1), exactly(1800)),
    "connections that end after an hour": Service(8, always(5), always(0.1), exactly(3600)),
    "all connections closed each hour": closed_together(0.2, 3600, 8),
    "500 clients, deployed each 2 hours": deploys(500, 7200, 1800),
    "load that drifts, sessions of an hour": drift(0.01, lognormal(3600, 0.7)),
}


def measure(services: dict[str, Service], runs: int, seed: int) -> Iterator[str]:
    for name, service in services.items():
        calls = sorted(at for n in range(runs) if (at := first_call(service, seed + n)) is not None)
        middle = f"{calls[len(calls) // 2] / 60:.0f}" if calls else "-"
        last = f"{calls[int(len(calls) * 0.95)] / 60:.0f}" if calls else "-"
        yield f"| {name} | {runs} | {len(calls)} | {middle} | {last} |"


def main(runs: int = 200, seed: int = 1) -> None:
    print_line = sys.stdout.write
    print_line(f"| service (seed {seed}) | runs | called | median minute | 95 % by minute |\n")
    print_line("|---|---|---|---|---|\n")
    for line in measure(LEAKS | RIGHT, runs, seed):
        print_line(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
