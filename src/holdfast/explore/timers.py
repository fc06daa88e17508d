"""The armed timers of a loop, by deadline, in the order of their calls where deadlines are equal.

asyncio keeps a heap, which forgets that order. Here any timer can be counted, found and removed
by its key, so a choice among timers costs two bisections and no scan.
"""

from __future__ import annotations

from asyncio import TimerHandle
from bisect import bisect_left, bisect_right, insort
from typing import Any

from holdfast.explore.hindsight import Stretch

__all__ = ["Timers"]

# Entries before `_head` have fired; they are cut off in one go, so that firing stays cheap.
_SLACK = 256
# How many neighbours are looked at for one that could come first. What is this close in time and
# has that many in between is found by the other choices, or not at all.
_NEIGHBOURS = 8

# The deadline and the order of the call, which is unique; then the handle, the stretch in which
# it was set, and whether the deadline would have been later had the call been.
Entry = tuple[float, int, TimerHandle, Stretch | None, bool]


class Timers:
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
        self, handle: Any, now: float, stretch: Stretch | None = None, *, relative: bool = False
    ) -> None:
        self.calls += 1
        when = _key(handle)
        insort(self._entries, (when, self.calls, handle, stretch, relative), lo=self._head)
        # The flag that asyncio keeps in the handle is only ever asked for its truth; the order of
        # the call fits into it, and makes the handle findable.
        handle._scheduled = self.calls
        if when <= now:
            self._forced = max(self._forced, (when, self.calls))

    def remove(self, handle: Any) -> None:
        """Forget a timer that was cancelled before it fired."""
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

    def forced(self) -> int:
        """How many cannot be put off: they were due already when they were set."""
        when, calls = self._forced
        return bisect_left(self._entries, (when, calls + 1), lo=self._head) - self._head

    def take(self, count: int) -> list[TimerHandle]:
        """Take the first `count` out, in order."""
        head, entries = self._head, self._entries
        handles = [entry[2] for entry in entries[head : head + count]]
        for _, order, handle, stretch, relative in entries[head : head + count]:
            handle._scheduled = False  # type: ignore[attr-defined]
            if relative and stretch is not None:
                stretch.pinned = max(stretch.pinned, order - 1)
        self._head = head + count
        if self._head > _SLACK and self._head * 2 > len(entries):
            del entries[: self._head]
            self._head = 0
        return handles

    # --- lateness that shows only afterwards -------------------------------------------------

    def overtakers(self, low: int, high: int, end: int, slack: float) -> list[tuple[int, int]]:
        """Pairs of timers, the first of them among `low` to `high`, the second before `end`, that
        would have come the other way round had the first been set later, by `slack` at most."""
        pairs = []
        entries, head = self._entries, self._head
        end = min(end, len(self))
        for early in range(low, min(high, low + _NEIGHBOURS)):
            when, order, _, stretch, relative = entries[head + early]
            if not relative or stretch is None or order <= stretch.pinned:
                continue
            # Later than the other one by a moment: so less than the room, not all of it.
            room, until = when + stretch.room(), when + slack
            for late in range(early + 1, min(end, early + 1 + _NEIGHBOURS)):
                other = entries[head + late]
                if other[0] >= room or other[0] > until:
                    break
                if other[3] is not None and other[3].number > stretch.number:
                    pairs.append((early, late))
        return pairs

    def put_after(self, early: int, late: int) -> float:
        """Set a timer anew, later, so that it comes right after another one; and with it whatever
        was set after it in the same stretch. How much later."""
        entries, head = self._entries, self._head
        when, first, _, stretch, _ = entries[head + early]
        seconds = entries[head + late][0] - when
        assert stretch is not None
        stretch.spend(seconds)
        moved = [e for e in entries[head:] if e[3] is stretch and e[4] and e[1] >= first]
        for entry in sorted(moved, key=_order):
            handle: Any = entry[2]
            self.remove(handle)
            handle._when += seconds
            self.add(handle, -1.0, stretch, relative=True)
        return seconds

    def hindsight(self, current: Stretch) -> tuple[Any, ...]:
        """What is known about the lateness of the armed timers: for each its place among the
        calls and stretches, and by how much it may have been set late, if at all."""
        armed = self._entries[self._head :]
        calls = sorted(entry[1] for entry in armed)
        known: list[Any] = [current.left()]
        numbers = sorted({e[3].number for e in armed if e[3] is not None} | {current.number})
        for _, order, _, stretch, relative in armed:
            if stretch is not None:
                late = relative and order > stretch.pinned
                room = (stretch.left(), round(stretch.room(), 9)) if late else ()
                known.append((calls.index(order), numbers.index(stretch.number), room))
        return tuple(known)

    def handles(self) -> list[TimerHandle]:
        return [entry[2] for entry in self._entries[self._head :]]


def _key(handle: TimerHandle) -> float:
    # To the nanosecond: 0.1 + 0.1 and 0.2 are one deadline, whatever their last bits say.
    return round(handle.when(), 9)


def _deadline(entry: Entry) -> float:
    return entry[0]


def _order(entry: Entry) -> int:
    return entry[1]
