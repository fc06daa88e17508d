"""The armed timers of a loop, by deadline, in the order of their calls where deadlines are equal.

asyncio keeps a heap, which loses that order. Here any timer can be counted, found and removed
by its key, so a choice among timers costs two bisections and no scan.
"""

from __future__ import annotations

from asyncio import TimerHandle
from bisect import bisect_left, bisect_right, insort
from typing import Any

from handfast._explore.loop.timer_lateness import QuietPeriod

# Entries before `_head` have fired; they are cut off in one go, so that firing stays cheap.
_SLACK = 256
# How many timers after one are considered to fire before it. A pair with more in between is found
# through other choices, or not at all.
_WINDOW = 8

# The deadline and the order of the call, which is unique; then the handle, the period in which
# it was set, and whether the deadline would have been later had the call been.
Entry = tuple[float, int, TimerHandle, QuietPeriod | None, bool]


class TimerQueue:
    """A sorted list of entries."""

    __slots__ = ("_entries", "_forced", "_head", "calls")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._head = 0
        self.calls = 0
        # Timers up to this key were due when they were set: no poll can come too early for them.
        self._forced: tuple[float, int] = (-1.0, 0)

    def __len__(self) -> int:
        return len(self._entries) - self._head

    def __bool__(self) -> bool:
        return len(self._entries) > self._head

    def add(
        self, handle: Any, now: float, period: QuietPeriod | None = None, *, relative: bool = False
    ) -> None:
        self.calls += 1
        when = _key(handle)
        insort(self._entries, (when, self.calls, handle, period, relative), lo=self._head)
        # asyncio uses this flag only as a boolean. The order of the call fits into it, and makes
        # it possible to find the handle again by bisection.
        handle._scheduled = self.calls
        if when <= now:
            self._forced = max(self._forced, (when, self.calls))

    def remove(self, handle: Any) -> None:
        """Remove a timer that was cancelled before it fired."""
        at = bisect_left(self._entries, (_key(handle), handle._scheduled), lo=self._head)
        del self._entries[at]
        handle._scheduled = False

    def first(self) -> float:
        return self._entries[self._head][0]

    def deadline(self, index: int) -> float:
        return self._entries[self._head + index][0]

    def until(self, when: float) -> int:
        """How many have a deadline up to `when`, that instant included."""
        return bisect_right(self._entries, when, lo=self._head, key=_deadline) - self._head

    def before(self, when: float) -> int:
        """How many have a deadline before `when`, that instant excluded."""
        return bisect_left(self._entries, when, lo=self._head, key=_deadline) - self._head

    def crowded(self, when: float, within: float) -> bool:
        """Whether two have a deadline as close to `when` as this."""
        return self.until(when + within) - self.before(when - within) > 1

    def forced(self) -> int:
        """How many cannot be postponed: they were due already when they were set."""
        when, calls = self._forced
        return bisect_left(self._entries, (when, calls + 1), lo=self._head) - self._head

    def take(self, count: int) -> list[TimerHandle]:
        """Remove and return the first `count`, in order."""
        head, entries = self._head, self._entries
        handles = [entry[2] for entry in entries[head : head + count]]
        for _, order, handle, period, relative in entries[head : head + count]:
            handle._scheduled = False  # type: ignore[attr-defined]
            if relative and period is not None:
                period.known_on_time = max(period.known_on_time, order - 1)
        self._head = head + count
        if self._head > _SLACK and self._head * 2 > len(entries):
            del entries[: self._head]
            self._head = 0
        return handles

    # --- lateness that shows only afterwards -------------------------------------------------

    def overtakers(self, low: int, high: int, end: int, slack: float) -> list[tuple[int, int]]:
        """Pairs of timers that would have fired in the other order if the first had been set later.

        The first of a pair is among `low` to `high`, the second before `end`; `slack` is how much
        later at most.
        """
        pairs = []
        entries, head = self._entries, self._head
        end = min(end, len(self))
        for early in range(low, min(high, low + _WINDOW)):
            when, order, _, period, relative = entries[head + early]
            if not relative or period is None or order <= period.known_on_time:
                continue
            # It has to be later than the other one, not equal: so less than all of the slack.
            latest, until = when + period.slack(), when + slack
            for late in range(early + 1, min(end, early + 1 + _WINDOW)):
                other = entries[head + late]
                if other[0] >= latest or other[0] > until:
                    break
                if other[3] is not None and other[3].number > period.number:
                    pairs.append((early, late))
        return pairs

    def put_after(self, early: int, late: int) -> float:
        """Move a timer, so that it fires right after another one, and return by how much.

        With it moves what was set after it in the same period.
        """
        entries, head = self._entries, self._head
        when, first, _, period, _ = entries[head + early]
        seconds = entries[head + late][0] - when
        assert period is not None
        period.spend(seconds)
        moved = [e for e in entries[head:] if e[3] is period and e[4] and e[1] >= first]
        for entry in sorted(moved, key=_order):
            handle: Any = entry[2]
            self.remove(handle)
            handle._when += seconds
            self.add(handle, -1.0, period, relative=True)
        return seconds

    def lateness_state(self, current: QuietPeriod) -> tuple[Any, ...]:
        """What is known about the lateness of the armed timers.

        For each its place among the calls and periods, and by how much it may have been set late.
        """
        armed = self._entries[self._head :]
        calls = sorted(entry[1] for entry in armed)
        known: list[Any] = [current.left()]
        numbers = sorted({e[3].number for e in armed if e[3] is not None} | {current.number})
        for _, order, _, period, relative in armed:
            if period is not None:
                late = relative and order > period.known_on_time
                open_slack = (period.left(), round(period.slack(), 9)) if late else ()
                known.append((calls.index(order), numbers.index(period.number), open_slack))
        return tuple(known)

    def handles(self) -> list[TimerHandle]:
        return [entry[2] for entry in self._entries[self._head :]]


def _key(handle: TimerHandle) -> float:
    # To the nanosecond: 0.1 + 0.2 and 0.3 are one deadline, although their last bits differ.
    return round(handle.when(), 9)


def _deadline(entry: Entry) -> float:
    return entry[0]


def _order(entry: Entry) -> int:
    return entry[1]
