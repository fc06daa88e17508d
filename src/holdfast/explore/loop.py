"""The explored loop: asyncio's own order of handles, virtual time, and a choice wherever a stock
loop leaves the answer to the world.

`_poll` mirrors `BaseEventLoop._run_once`: first what has arrived from outside, then the timers
that are due, then exactly the handles that are in the queue at that moment. What may be chosen,
and what never, is fixed in docs/guides/schedules.md.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import base_events
from collections.abc import Callable, Hashable
from typing import Any

from holdfast.explore.hindsight import Stretch
from holdfast.explore.ownership import made_by_the_program
from holdfast.explore.refusals import Refusing
from holdfast.explore.roll import describe
from holdfast.explore.stepping import Deadlocked, LeftOver, Stepping
from holdfast.explore.timers import Timers
from holdfast.explore.twins.children import Children
from holdfast.explore.twins.network import Network
from holdfast.explore.twins.threads import Threads
from holdfast.explore.world import Channel, Event, World

__all__ = ["ExploredLoop"]

_FOREVER = float("inf")
# How many armed timers a new one looks at that it would overtake if it were set late.
_OVERTAKEN = 64
# Who reads the clock of the loop only to start a timer.
_TIMEOUT: Any = asyncio.timeout.__code__
_RESCHEDULE: Any = asyncio.Timeout.reschedule.__code__
# A monotonic clock never reads 0 on a machine that has booted, and programs rely on that: "last
# seen at 0.0" has to mean long ago.
_BOOTED = 1024.0


class ExploredLoop(Children, Network, Threads, Stepping, Refusing, base_events.BaseEventLoop):
    """A loop in virtual time that asks its decider at every real choice."""

    virtual = True

    def __init__(self) -> None:
        super().__init__()
        self._now = _BOOTED
        # How late this run has made the loop, or the world, so far; `settings.stall` bounds it.
        self.lateness = 0.0
        self._timers = Timers()
        self._stretch = Stretch(0)
        self.world = World(self.time, self._pay_attention)

    # --- the clock -------------------------------------------------------------------------

    def time(self) -> float:
        caller = sys._getframe(1)
        if caller.f_code is _TIMEOUT:
            # It only adds its delay: a timer that starts here, as with `call_later`.
            delay = caller.f_locals["delay"]
            if delay > 0:
                self._start_late(self._now + delay)
                self._stretch.started += (round(self._now + delay, 9),)
        elif caller.f_code is not _RESCHEDULE:
            # Whoever reads the clock knows that it was not late until now.
            self._stretch.pinned = self._timers.calls
        return self._now

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        if delay > 0:
            self._start_late(self._now + delay)
        return self._arm(self._now + delay, callback, args, context, relative=True)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if when is None:
            raise TypeError("when cannot be None")
        relative = round(when, 9) in self._stretch.started
        return self._arm(when, callback, args, context, relative=relative)

    def _arm(
        self, when: float, callback: Any, args: Any, context: Any, *, relative: bool
    ) -> asyncio.TimerHandle:
        self._check_closed()  # type: ignore[attr-defined]
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if getattr(callback, "__code__", None) is None and not made_by_the_program(
            sys._getframe(1)
        ):
            self.foreign_timers.add(timer)  # its callback will not tell
        self._timers.add(timer, self._now, self._stretch, relative=relative)
        return timer

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle._scheduled:
            self._timers.remove(handle)
            self._stretch.noticed(handle.when() - self._now)

    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that are still armed."""
        return self._timers.handles()

    def _start_late(self, when: float) -> None:
        """The code before this call may have taken long, so that the timer comes after some that
        are armed already. (For those that are set later, see `hindsight`.)"""
        timers, when = self._timers, round(when, 9)
        if not timers:
            return
        before = timers.until(when)
        overtaken = min(timers.until(when + self._slack()) - before, _OVERTAKEN)
        if overtaken > 0:
            seconds = sorted({timers.deadline(before + n) - when for n in range(overtaken)})
            answer = self.choose(
                "late",
                len(seconds) + 1,
                lambda: ("soon", *(f"late{n}" for n in range(1, len(seconds) + 1))),
                lambda n: (
                    f"{_running(self)} is slow by {seconds[n - 1]:.3f} s before it sets a timer"
                ),
            )
            if answer:
                self._be_late(seconds[answer - 1])

    def _slack(self) -> float:
        """How much later than necessary the loop may still be in this run."""
        return 0.0 if self.settling else max(0.0, self.settings.stall - self.lateness)

    def _be_late(self, seconds: float) -> None:
        self._move(round(self._now + seconds, 9), waited=0.0)
        self.lateness += seconds

    def _move(self, now: float, *, waited: float) -> None:
        """Move the clock. `waited`: for how long the loop had nothing to do before that."""
        if now > self._now:
            self._stretch.ended(waited=waited)
            self._now = now
            self._stretch = Stretch(self._stretch.number + 1)

    # --- the poll --------------------------------------------------------------------------

    def _run_once(self) -> None:
        if not (self._ready or self._stopping):
            self._pause()
        if self.world.waiting or self._timers:
            self._poll()
        elif not (self._ready or self._stopping):
            raise Deadlocked
        self._run_batch()

    def _poll(self) -> None:
        wake = self._now
        if not self._busy():
            # Nothing to do: the loop sleeps until the first thing happens by itself.
            arrival = self.world.first()
            timer = self._timers.first() if self._timers else _FOREVER
            wake = max(wake, timer if arrival is None else min(arrival, timer))
        if self.world.waiting and self._arrivals(wake) and not self._busy():
            return  # a thread has had its turn, and the loop sleeps on
        if self._timers and self.firing:
            self._fire(max(wake, self._now))

    def _arrivals(self, wake: float) -> bool:
        """What has come from outside by now, and in which order. Whether anything has."""
        came = False
        anytime = self.settings.model == "latency" and not self.settling
        while True:
            late = _FOREVER if anytime else wake + self._slack()
            heads = self.world.heads(late)
            if not heads:
                return came
            timer = self._timers.first() if self._timers and self.firing else _FOREVER
            events: list[Event | None] = [*heads]
            if self._busy() or timer < heads[0].at:
                events.insert(0, None)  # in the plain order the world waits for an idle loop
            elif timer <= late and timer < _FOREVER:
                events.append(None)
            event, arrive = self._pick("arrive", events)
            if event is None or arrive is None:
                return came
            self.world.drop(event)
            came = True
            if event.at > wake and not anytime:  # beyond the time of waking it is lateness
                self.lateness += event.at - wake
            self._move(event.at, waited=0.0)
            wake = max(wake, self._now)
            arrive()

    def _pick(
        self, kind: str, events: list[Event | None]
    ) -> tuple[Event | None, Callable[[], Any] | None]:
        """Which of these events comes next, and in which form: as it is, or as a fault."""
        forms: list[tuple[Event | None, str]] = [(event, "") for event in events]
        for event in events:
            if event is not None:
                forms += [(event, name) for name in event.faults if name in self.settings.faults]
        answer = 0
        if len(forms) > 1:
            answer = self.choose(
                kind,
                len(forms),
                lambda: [_actor(event, fault) for event, fault in forms],
                lambda n: _said(*forms[n]),
            )
        event, fault = forms[answer]
        if event is None:
            return None, None
        if self._observer is not None:
            self._observer.arrives(self.instant, event.channel.name, fault or event.label)
        return event, event.faults[fault] if fault else event.arrive

    def _fire(self, wake: float) -> None:
        """Queue the timers whose time has come: a prefix by deadline, and how long it is, is a
        choice. A loop that has nothing else to do fires one at least."""
        timers, idle = self._timers, not self._busy()
        if idle and self.settings.model == "latency":
            wake = max(wake, timers.first())  # whatever else is on its way may take any time
        if len(timers) > 1 and self._slack() > 0.0:
            self._reorder(0, max(timers.until(wake), idle), len(timers))
            if idle and not self.world.waiting:
                wake = max(self._now, timers.first())
        due = timers.until(wake)
        # What is past for good cannot be put off; what is due at this very moment can.
        least = min(max(timers.forced(), timers.before(wake)), due)
        if idle:
            least = max(least, 1)
            due = max(due, 1)
        most = max(due, timers.until(wake + self._slack()))
        count = due
        if most > least:
            answer = self.choose(
                "timers",
                most - least + 1,
                lambda: [f"timers{_prefix(n, due, least)}" for n in range(most - least + 1)],
                lambda n: _together(_prefix(n, due, least), due),
            )
            count = _prefix(answer, due, least)
        if count:
            first, last = timers.first(), timers.deadline(count - 1)
            self.lateness += max(0.0, last - wake)
            if count > due and self._slack() > 0.0:
                self._reorder(due, count, count)
            self._move(last, waited=max(0.0, first - self._now) if idle else 0.0)
            self._ready.extend(timers.take(count))
        if count < due:
            self._stretch.noticed(0.0)  # later than this, and they could not have been put off

    def _reorder(self, low: int, high: int, end: int) -> None:
        """Ask whether a timer that is about to fire was set late, so that another one, which was
        set after it, comes first."""
        timers = self._timers
        while pairs := timers.overtakers(low, high, end, self._slack()):
            answer = self.choose(
                "overtake",
                len(pairs) + 1,
                lambda: [f"overtake{n}" for n in range(len(pairs) + 1)],
                lambda n: f"a timer was set late and comes after {_name(timers, pairs[n - 1])}",
            )
            if answer == 0:
                return
            self._overtake(*pairs[answer - 1])

    def hindsight(self) -> tuple[Any, ...]:
        """What `_reorder` may still ask about: part of the state of the loop."""
        if self._slack() <= 0.0:
            return ()
        return self._timers.hindsight(self._stretch)

    def _overtake(self, early: int, late: int) -> None:
        self.lateness += self._timers.put_after(early, late)

    # --- between two handles -----------------------------------------------------------------

    def _asks_between(self) -> bool:
        return self.world.between > 0

    def _hand_over(self) -> None:
        while True:
            heads = self.world.heads(self._now, between=True)
            if not heads:
                return
            event, arrive = self._pick("between", [None, *heads])
            if event is None or arrive is None:
                return
            self.world.drop(event)
            arrive()

    # --- for the twins of the outside --------------------------------------------------------

    def channel(self, name: str, *, between: bool = False) -> Channel:
        """A new source of events outside, whose events keep their order."""
        owner = asyncio.current_task(self)
        return self.world.channel(name, between=between, owner=owner)

    def enqueue(self, callback: Callable[..., object], *args: Any, context: Any = None) -> None:
        """What a selector does when something arrives: put a handle at the end of the queue."""
        self._ready.append(asyncio.Handle(callback, args, self, context))

    def left_outside(self) -> LeftOver | None:
        return self._left_over_children() or self._left_over_network() or self._left_over_threads()

    def _something_ready(self) -> bool:
        if self._ready or self.world.heads(self._now):
            return True
        if not self.firing:
            return False
        arrival = self.world.first()
        timer = self._timers.first() if self._timers else _FOREVER
        coming = timer if arrival is None else min(arrival, timer)
        return coming < _FOREVER and coming <= self.horizon

    def _write_to_self(self) -> None:
        """There is no selector to wake up."""

    def _process_events(self, event_list: Any) -> None:
        """There is no selector either."""


def _actor(event: Event | None, fault: str) -> Hashable:
    return "" if event is None else (event.channel.name, event.channel.owner, fault)


def _said(event: Event | None, fault: str) -> str:
    if event is None:
        return "nothing from outside has come yet"
    return f"{fault} instead of {event.label}" if fault else f"{event.label} comes now"


def _name(timers: Timers, pair: tuple[int, int]) -> str:
    return f"the one at {timers.deadline(pair[1]):.3f}"


def _prefix(answer: int, due: int, least: int) -> int:
    """How many timers fire: as many as are due; fewer, one by one; then more."""
    if answer <= due - least:
        return due - answer
    return least + answer


def _together(count: int, due: int) -> str:
    fire = "1 timer fires" if count == 1 else f"{count} timers fire together"
    return f"{fire} instead of {due or 'none'}"


def _running(loop: ExploredLoop) -> str:
    task = asyncio.current_task(loop)
    return "the code" if task is None else describe(task).rpartition("<locals>.")[2]
