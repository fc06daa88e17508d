"""The explored loop: asyncio's own order of handles, virtual time, and a choice wherever a stock
loop leaves the answer to the outside.

`_poll` mirrors `BaseEventLoop._run_once`: first what has arrived from outside, then the timers
that are due, then exactly the handles that are in the queue at that moment. What may be chosen,
and what never, is fixed in docs/guides/schedules.md.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import base_events
from collections.abc import Callable
from math import nextafter
from types import FrameType
from typing import Any

from handfast._code_owner import made_by_program
from handfast._explore.loop.external_events import Channel, Event, ExternalEvents
from handfast._explore.loop.stepped_loop import LeftOver, SteppedLoop
from handfast._explore.loop.stepping import Deadlocked, Stepper
from handfast._explore.loop.timer_lateness import QuietPeriod
from handfast._explore.loop.timer_queue import TimerQueue
from handfast._explore.loop.unsupported import Refusing
from handfast._explore.search.plan import Actor
from handfast._explore.simulation.network import Network
from handfast._explore.simulation.processes import Children
from handfast._explore.simulation.threads import Threads
from handfast._explore.trace import choice_text

_FOREVER = float("inf")
# The seconds in which a timer that is not due yet fires at the earliest.
_LEAST = 1e-9
# How many armed timers a new one looks at that it would overtake if it were set late.
_OVERTAKEN = 64
# These read the clock of the loop only to start a timer: `asyncio.timeout(delay)` computes
# `loop.time() + delay` and sets the timer when it is entered. The program does not see the time, so
# such a timer can be late as one of `call_later` can (test_strict_order.py, "timeout").
_TIMEOUT: Any = asyncio.timeout.__code__
_RESCHEDULE: Any = asyncio.Timeout.reschedule.__code__
# A monotonic clock never reads 0 on a machine that has booted, and programs rely on that: "last
# seen at 0.0" has to mean long ago.
_BOOTED = 1024.0


class ExploredLoop(Children, Network, Threads, SteppedLoop, Refusing, base_events.BaseEventLoop):
    """A loop in virtual time that leaves every real choice to its decider."""

    virtual = True

    def __init__(self) -> None:
        super().__init__()
        self._now = _BOOTED
        # How late this run has made the loop, or the outside, so far; at most `settings.stall`.
        self.lateness = 0.0
        self._timers = TimerQueue()
        self._period = QuietPeriod(0)
        # Whether two timers were armed whose order lateness can change.
        self._close_timers = False
        self.events = ExternalEvents(self.time, lambda: self.stepper.expect_between())

    def prepare(self, stepper: Stepper) -> None:
        super().prepare(stepper)
        stepper.hand_over = self._hand_over

    # --- the clock -------------------------------------------------------------------------

    def time(self) -> float:
        caller = sys._getframe(1)
        if caller.f_code is _TIMEOUT:
            # The delay is not an argument of this call, so it is read from the caller.
            delay = caller.f_locals["delay"]
            if 0 < delay < _FOREVER:
                self._start_late(self._now + delay)
                self._period.started += (round(self._now + delay, 9),)
                # It could be over before it is entered, which is not listed.
                self.stepper.late_timers |= delay <= self.stepper.settings.stall
        elif caller.f_code is not _RESCHEDULE:
            # The program can see the time now, so what it has set before was not set late.
            self._period.known_on_time = self._timers.calls
            self._time_read(caller)
        return self._now

    def _time_read(self, caller: FrameType) -> None:
        """Called when the program has read the time of this loop."""

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        if 0 < delay < _FOREVER:
            self._start_late(self._now + delay)
        when = self._now + delay
        if when - self._now < delay < _FOREVER:
            when = nextafter(when, _FOREVER)  # the sum was rounded down: it must not end too early
        return self._arm(when, callback, args, context, relative=True)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if when is None:
            raise TypeError("when cannot be None")
        # An absolute time does not move with the code that sets it, unless it was computed from a
        # delay by `asyncio.timeout`.
        relative = round(when, 9) in self._period.started
        return self._arm(when, callback, args, context, relative=relative)

    def _arm(
        self, when: float, callback: Any, args: Any, context: Any, *, relative: bool
    ) -> asyncio.TimerHandle:
        self._check_closed()  # type: ignore[attr-defined]
        now = self._now
        if now < when < now + 2 * _LEAST and round(when, 9) <= now:
            # Time passes on a machine: a program that sleeps for the rest of a period, as it has
            # computed it from the clock, gets to the end of the period at last.
            when = now + _LEAST
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if getattr(callback, "__code__", None) is None and not made_by_program(sys._getframe(1)):
            self.stepper.foreign_timers.add(timer)  # a callback in C does not show whose it is
        if when == _FOREVER:
            return timer  # `sleep(math.inf)` never ends: there is no timer that could fire
        self._timers.add(timer, self._now, self._period, relative=relative)
        if not self.stepper.late_timers:
            self._note_unlisted(round(when, 9))
        return timer

    def _note_unlisted(self, when: float) -> None:
        """Note whether lateness can order the timers of this run in a way that is not listed.

        That takes three timers, two of them so close that the loop can be late by their distance.
        Those ways are the tests of test_strict_order.py that are expected to fail.
        """
        timers, slack = self._timers, self._slack()
        if slack and not self._close_timers:
            self._close_timers = timers.crowded(when, slack)
        self.stepper.late_timers = self._close_timers and timers.calls > 2

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle._scheduled:
            self._timers.remove(handle)
            # If the code that cancels it had been later than this, the timer would have fired.
            self._period.cap_lateness(handle.when() - self._now)

    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that are still armed."""
        return self._timers.handles()

    def _start_late(self, when: float) -> None:
        """Choose whether the code before this call took so long that the timer fires after others.

        Only others that are armed already; for those that are set later, see `_reorder`.
        """
        timers, when = self._timers, round(when, 9)
        if not timers:
            return
        before = timers.until(when)
        overtaken = min(timers.until(when + self._slack()) - before, _OVERTAKEN)
        if overtaken > 0:
            seconds = sorted({timers.deadline(before + n) - when for n in range(overtaken)})
            answer = self.stepper.choose(
                "late",
                len(seconds) + 1,
                lambda: ("soon", *(f"late{n}" for n in range(1, len(seconds) + 1))),
                lambda n: (
                    f"{choice_text.running_name(self)} took "
                    f"{choice_text.milliseconds(seconds[n - 1])} before it started a timer"
                ),
            )
            if answer:
                self._be_late(seconds[answer - 1])

    def _slack(self) -> float:
        """How much later than necessary the loop may still be in this run."""
        stepper = self.stepper
        left = stepper.settings.stall - self.lateness
        return left if left > 0.0 and not stepper.settling else 0.0

    def _be_late(self, seconds: float) -> None:
        self._move(round(self._now + seconds, 9), waited=0.0)
        self.lateness += seconds

    def _move(self, now: float, *, waited: float) -> None:
        """Move the clock. `waited`: for how long the loop had nothing to do before that."""
        if now > self._now:
            self._period.ended(waited=waited)
            self._now = now
            self._period = QuietPeriod(self._period.number + 1)

    # --- the poll --------------------------------------------------------------------------

    def _run_once(self) -> None:
        stepper, ready = self.stepper, self._ready
        idle = not (ready or self._stopping)
        if idle:
            stepper.pass_instant()
        if self.events.waiting or self._timers:
            self._poll()
        elif idle and not (ready or self._stopping):  # a cancel may have queued something
            raise Deadlocked
        stepper.run_batch(ready)

    def _poll(self) -> None:
        wake = self._now
        if not self._busy():
            # Nothing to do: the loop sleeps until the first event or timer.
            arrival = self.events.first()
            timer = self._timers.first() if self._timers else _FOREVER
            wake = max(wake, timer if arrival is None else min(arrival, timer))
        if self.events.waiting and self._arrivals(wake) and not self._busy():
            return  # a thread has run, and the loop still has nothing to do
        if self._timers and self.stepper.firing:
            self._fire(wake if wake > self._now else round(self._now, 9))

    def _arrivals(self, wake: float) -> bool:
        """Let events arrive, in an order that is a choice. Whether any has arrived."""
        arrived, stepper = False, self.stepper
        anytime = stepper.settings.model == "latency" and not stepper.settling
        while True:
            late = _FOREVER if anytime else wake + self._slack()
            heads = self.events.next_events(late)
            if not heads:
                return arrived
            timer = self._timers.first() if self._timers and stepper.firing else _FOREVER
            events: list[Event | None] = [*heads]
            if owed := [event for event in heads if event.owed]:
                events = [*owed, *_beside(heads)]  # the poll does not end before they have arrived
            elif self._busy() or timer < heads[0].at:
                events.insert(0, None)  # in the plain order the outside waits for an idle loop
            elif timer <= late and timer < _FOREVER:
                events.append(None)
            event, arrive = self._pick("arrive", events)
            if event is None or arrive is None:
                return arrived
            self.events.drop(event)
            arrived = True
            if event.at > wake and not anytime:  # beyond the time of waking it is lateness
                self.lateness += event.at - wake
            self._move(event.at, waited=0.0)
            wake = max(wake, self._now)
            arrive()

    def _pick(
        self, kind: str, events: list[Event | None]
    ) -> tuple[Event | None, Callable[[], Any] | None]:
        """Choose which of these events arrives next: as it is, or as a fault."""
        stepper = self.stepper
        forms: list[tuple[Event | None, str]] = [(event, "") for event in events]
        if faults := stepper.settings.faults:
            for event in events:
                if event is not None:
                    forms += [(event, name) for name in event.faults if name in faults]
        answer = 0
        if len(forms) > 1:
            answer = stepper.choose(
                kind,
                len(forms),
                lambda: [self._actor(event, fault) for event, fault in forms],
                lambda n: choice_text.arrived(*forms[n]),
            )
        event, fault = forms[answer]
        if stepper.points is not None:
            actor = self._actor(event, fault)
            stepper.counts[actor] = stepper.counts.get(actor, 0) + 1
        if event is None:
            return None, None
        if stepper.observer is not None:
            stepper.observer.arrives(stepper.instant, event.channel.name, fault or event.label)
        return event, event.faults[fault] if fault else event.arrive

    def _actor(self, event: Event | None, fault: str) -> Actor:
        if event is None:
            return ""
        return event.channel.name, self.stepper.tasks.index(event.channel.owner), fault

    def _fire(self, wake: float) -> None:
        """Queue timers: a prefix by deadline, whose length is a choice.

        A loop that has nothing else to do fires at least one.
        """
        timers, idle = self._timers, not self._busy()
        if not idle and timers.first() > wake + self._slack():
            return  # the usual case: none can be due before the loop has nothing to do
        if idle and self.stepper.settings.model == "latency":
            wake = max(wake, timers.first())  # all other events may take any time
        if len(timers) > 1 and self._slack() > 0.0:
            self._reorder(0, max(timers.until(wake), idle), len(timers))
            if idle and not self.events.waiting:
                wake = max(round(self._now, 9), timers.first())
        due = timers.until(wake)
        # What was due before this moment cannot be postponed; what is due at this moment can.
        least = min(max(timers.forced(), timers.before(wake)), due)
        if idle:
            least = max(least, 1)
            due = max(due, 1)
        most = max(due, timers.until(wake + self._slack()))
        count = due
        if most > least:
            answer = self.stepper.choose(
                "timers",
                most - least + 1,
                lambda: [f"timers{_prefix(n, due, least)}" for n in range(most - least + 1)],
                lambda n: self._timers_fired(_prefix(n, due, least), due, wake),
            )
            count = _prefix(answer, due, least)
        if count:
            first, last = timers.first(), timers.deadline(count - 1)
            self.lateness += max(0.0, last - wake)
            if count > due and self._slack() > 0.0:
                self._reorder(due, count, count)
            fired = timers.take(count)
            # A deadline stands in the queue with nine digits. The program may know it more exactly.
            for timer in fired:
                if timer.when() > last:
                    last = timer.when()
            self._move(last, waited=max(0.0, first - self._now) if idle else 0.0)
            self._ready.extend(fired)
        if count < due:
            self._period.cap_lateness(0.0)  # any later, and they could not have been postponed

    def _reorder(self, low: int, high: int, end: int) -> None:
        """Choose whether a timer that is about to fire was set late, so that another goes first."""
        timers = self._timers
        while pairs := timers.overtakers(low, high, end, self._slack()):
            answer = self.stepper.choose(
                "overtake",
                len(pairs) + 1,
                lambda: [f"overtake{n}" for n in range(len(pairs) + 1)],
                lambda n: self._timer_delayed(pairs[n - 1]),
            )
            if answer == 0:
                return
            self._overtake(*pairs[answer - 1])

    def _timers_fired(self, count: int, due: int, wake: float) -> str:
        late = max(0.0, self._timers.deadline(count - 1) - wake) if count else 0.0
        return choice_text.timers_fired(self._timers.handles(), count, due, late)

    def _timer_delayed(self, pair: tuple[int, int]) -> str:
        return choice_text.timer_delayed(self._timers.handles(), *pair)

    def lateness_state(self) -> tuple[Any, ...]:
        """What `_reorder` still depends on: part of the state of the loop."""
        if self._slack() <= 0.0:
            return ()
        return self._timers.lateness_state(self._period)

    def _overtake(self, early: int, late: int) -> None:
        self.lateness += self._timers.put_after(early, late)

    # --- between two handles -----------------------------------------------------------------

    def _hand_over(self) -> bool:
        """Let arrive what need not wait for a poll; whether more of that kind is on its way."""
        while events := self.events.next_events(self._now, between=True):
            event, arrive = self._pick("between", [None, *events])
            if event is None or arrive is None:
                break
            self.events.drop(event)
            arrive()
        return self.events.between > 0

    # --- for the simulated outside -----------------------------------------------------------

    def channel(self, name: str, *, between: bool = False) -> Channel:
        """A new source of events outside, whose events keep their order."""
        owner = asyncio.current_task(self)
        return self.events.channel(name, between=between, owner=owner)

    def enqueue(self, callback: Callable[..., object], *args: Any, context: Any = None) -> None:
        """Append a handle to the queue, as a selector does when something arrives."""
        self._ready.append(asyncio.Handle(callback, args, self, context))

    def left_outside(self) -> LeftOver | None:
        return self._left_over_children() or self._left_over_network() or self._left_over_threads()

    def _busy(self) -> bool:
        """Whether the poll may not wait."""
        return bool(self._ready or (self._stopping and not self.stepper.settling))

    def _something_ready(self) -> bool:
        if self._ready or self.events.next_events(self._now):
            return True
        if not self.stepper.firing:
            return False
        arrival = self.events.first()
        timer = self._timers.first() if self._timers else _FOREVER
        coming = timer if arrival is None else min(arrival, timer)
        return coming < _FOREVER and coming <= self.stepper.horizon

    def _write_to_self(self) -> None:
        """There is no selector to wake up."""

    def _process_events(self, event_list: Any) -> None:
        """There is no selector either."""


def _beside(heads: list[Event]) -> list[Event]:
    """What may arrive beside what is owed: while the poll is not over, no thread runs."""
    return [event for event in heads if not (event.owed or event.channel.between)]


def _prefix(answer: int, due: int, least: int) -> int:
    """How many timers fire: as many as are due; fewer, one by one; then more."""
    if answer <= due - least:
        return due - answer
    return least + answer
