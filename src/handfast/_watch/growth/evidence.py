"""The conditions under which the tasks of a place are called a leak. No state, no clock.

What is alive follows the load: twice the requests, twice the tasks. Three things do not follow it:

1. **Survival.** Of the tasks that are older than `age` now, how many are still alive `age` later?
   The buckets of ages are powers of two, so this is known exactly without a record of any single
   task: whatever is older than `2 * age` then was older than `age` now. Requests, sessions and
   batch jobs end, so some of them are gone; what has leaked never is. `p_value` says how likely it
   is that none (or so few) have ended if they lived for some hours on average: only then is the
   number of tasks that have been seen not to end large enough.
2. **A steady share.** The number older than `age` rises with the number created `age` ago, on a
   straight line: the robust trend of `handfast._trend`. A pool, or one burst, is a step and flat
   after it.
3. **No saturation.** The share of new tasks that stay must not fall. A cache also keeps a task for
   each key, but ever fewer, since ever more keys are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from handfast._trend import Sample, grows, slope

LEAST = 20
"""How many tasks must have been added."""

# A place whose tasks mostly end may be called once it is excluded that those that stay would end
# by themselves after this time on average, in seconds; a place whose tasks mostly stay, later.
_LIFETIME = 3 * 3600.0
_LIFETIME_IF_MOST_STAY = 12 * 3600.0
_MOST = 0.5
# A place whose tasks mostly stay has shown no lifetime of its own: it is watched for longer.
_LEAST_AGE_IF_MOST_STAY = 2048.0

# How many of those that should have leaked may end all the same.
_MAY_END = 0.01
# A falling share of at most this is a change in the mix of requests.
_STEADY = 0.92
# Of so many standard deviations.
_SIGMAS = 1.5
_TRENDS_NEED = 8


@dataclass(frozen=True, slots=True)
class Survival:
    """Of how many tasks the next `age` seconds were watched, and how many ended in them."""

    watched: int
    ended: int

    def is_endless(self) -> bool:
        """Whether as good as none of them ended."""
        return self.ended <= _MAY_END * self.watched


@dataclass(frozen=True, slots=True)
class Point:
    """Of the tasks that had been created at a moment, how many are still alive `age` later."""

    at: float
    created: int
    older: int


def most_stay(share: float) -> bool:
    """Whether most of the tasks of a place stay."""
    return share > _MOST


def p_value(survival: Survival, age: float, share: float) -> float:
    """How likely it is that so few end in `age` seconds, if they all end some time."""
    lifetime = _LIFETIME_IF_MOST_STAY if most_stay(share) else _LIFETIME
    return _at_most(survival.ended, survival.watched, 1 - math.exp(-age / lifetime))


def _at_most(successes: int, trials: int, chance: float) -> float:
    """The probability of at most so many successes (binomial)."""
    log_odds = math.log(chance) - math.log1p(-chance)
    term = trials * math.log1p(-chance)
    total = math.exp(term)
    for k in range(1, min(successes, trials) + 1):
        term += math.log((trials - k + 1) / k) + log_odds
        total += math.exp(term)
    return min(1.0, total)


def share_that_stays(recent: Sequence[Point], history: Sequence[Point], age: float) -> float | None:
    """The share of the new tasks that stay, or None if there is no steady one.

    `recent` has three windows, `history` the whole time that the place was watched.
    """
    if recent[-1].older - recent[0].older < LEAST:
        return None
    samples = _by_created(recent)
    if len(samples) < _TRENDS_NEED or not grows(samples):
        return None
    share = slope(samples)
    if most_stay(share) and age < _LEAST_AGE_IF_MOST_STAY:
        return None
    if _saturates(samples) or _saturates(_by_created(history)):
        return None
    # If a cache creates tasks only for new keys, all of them stay: it saturates in time.
    if most_stay(share) and _saturates([(each.at, float(each.older)) for each in history]):
        return None
    return share


def _by_created(points: Sequence[Point]) -> list[Sample]:
    """One sample for each number of created tasks: the last."""
    last = {each.created: each.older for each in points}
    return [(float(created), float(older)) for created, older in last.items()]


def _saturates(curve: Sequence[Sample]) -> bool:
    """Whether the last third of a curve rises less than the first, and not by chance.

    The numbers of tasks that stay are counts, so their variance is as large as they are.
    """
    (x0, y0), (x1, y1) = curve[0], curve[-1]
    third = (x1 - x0) / 3
    first = _at(curve, x0 + third) - y0
    last = y1 - _at(curve, x1 - third)
    by_chance = _SIGMAS * math.sqrt(first + max(last, 0.0))
    return last < _STEADY * first and first - last > by_chance


def _at(curve: Sequence[Sample], x: float) -> float:
    for (x1, y1), (x2, y2) in pairwise(curve):
        if x <= x2:
            return y1 + (y2 - y1) * (x - x1) / (x2 - x1) if x2 > x1 else y2
    return curve[-1][1]


def unlikely_by_chance(p_values: Sequence[float], rate: float) -> float:
    """The highest p-value to accept, so that at most `rate` of what is accepted is false.

    Benjamini and Hochberg: with many places, one of them looks unusual by chance.
    """
    accepted = 0.0
    for rank, p in enumerate(sorted(p_values), start=1):
        if p <= rate * rank / len(p_values):
            accepted = p
    return accepted
