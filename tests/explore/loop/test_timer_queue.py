"""The armed timers by deadline, and what is known about how late each may have been set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from handfast._explore.loop.timer_lateness import QuietPeriod
from handfast._explore.loop.timer_queue import TimerQueue


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


class _Set:
    """Timers that are named by the order of their calls, from 0."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.timers = TimerQueue()
        self.handles: list[Any] = []

    def add(self, when: float, now: float = 0.0, *about: Any, **options: Any) -> None:
        handle = asyncio.TimerHandle(when, print, (len(self.handles),), self.loop)
        self.handles.append(handle)
        self.timers.add(handle, now, *about, **options)

    def order(self) -> list[int]:
        return [getattr(handle, "_args")[0] for handle in self.timers.handles()]  # noqa: B009


@pytest.fixture
def armed(loop: asyncio.AbstractEventLoop) -> _Set:
    return _Set(loop)


def test_they_stand_by_deadline_and_then_in_the_order_of_their_calls(armed: _Set) -> None:
    for when in (3.0, 1.0, 2.0, 1.0):
        armed.add(when)
    assert armed.order() == [1, 3, 2, 0]
    assert (len(armed.timers), armed.timers.first(), armed.timers.deadline(2)) == (4, 1.0, 2.0)


def test_sums_that_differ_in_their_last_bits_are_one_deadline(armed: _Set) -> None:
    armed.add(0.3)
    armed.add(0.1 + 0.2)
    armed.add(0.3)
    assert armed.order() == [0, 1, 2]
    assert armed.timers.until(0.3) == 3


def test_until_includes_the_instant_and_before_does_not(armed: _Set) -> None:
    for when in (1.0, 2.0, 2.0, 3.0):
        armed.add(when)
    assert [armed.timers.until(when) for when in (0.5, 1.0, 2.0, 9.0)] == [0, 1, 3, 4]
    assert [armed.timers.before(when) for when in (0.5, 1.0, 2.0, 9.0)] == [0, 0, 1, 4]


def test_a_cancelled_one_is_gone_wherever_it_stood(armed: _Set) -> None:
    for when in (1.0, 1.0, 1.0, 2.0):
        armed.add(when)
    armed.timers.remove(armed.handles[1])
    armed.timers.remove(armed.handles[3])
    assert armed.order() == [0, 2]
    assert not armed.handles[1]._scheduled


def test_what_was_due_when_it_was_set_cannot_be_put_off_nor_what_is_before_it(armed: _Set) -> None:
    armed.add(4.0, now=3.0)
    assert armed.timers.forced() == 0
    armed.add(5.0, now=5.0)
    armed.add(5.0, now=4.0)
    assert armed.timers.forced() == 2


def test_taking_many_keeps_the_rest_in_order(armed: _Set) -> None:
    for when in range(1000):
        armed.add(float(when))
    taken = [armed.timers.take(1)[0] for _ in range(900)]
    assert taken == armed.handles[:900]
    assert armed.timers.handles() == armed.handles[900:]
    assert len(armed.timers) == 100
    assert armed.timers
    armed.timers.take(100)
    assert not armed.timers


# --- lateness that shows afterwards ----------------------------------------------------------


def _ended(number: int, waited: float) -> QuietPeriod:
    period = QuietPeriod(number)
    period.ended(waited=waited)
    return period


def test_a_timer_may_have_been_set_late_if_the_loop_then_waited_longer(armed: _Set) -> None:
    armed.add(3.0, 0.0, _ended(0, waited=1.0), relative=True)
    armed.add(3.5, 0.0, _ended(1, waited=0.0), relative=True)
    assert armed.timers.overtakers(0, 1, 2, 1.0) == [(0, 1)]
    assert armed.timers.overtakers(0, 1, 2, 0.4) == [], "more than the slack"
    assert armed.timers.overtakers(1, 2, 2, 1.0) == []
    assert armed.timers.put_after(0, 1) == 0.5
    assert armed.order() == [1, 0]
    assert armed.handles[0].when() == 3.5


@pytest.mark.parametrize("waited", [0.0, 0.5])
def test_a_longer_wait_of_the_loop_is_needed_as_well(armed: _Set, waited: float) -> None:
    armed.add(3.0, 0.0, _ended(0, waited), relative=True)
    armed.add(3.5, 0.0, _ended(1, waited=0.0))
    assert armed.timers.overtakers(0, 1, 2, 1.0) == []


def test_an_absolute_deadline_is_never_late_and_neither_is_one_of_the_same_period(
    armed: _Set,
) -> None:
    first = _ended(0, waited=9.0)
    armed.add(3.0, 0.0, first, relative=False)
    armed.add(3.1, 0.0, first, relative=True)
    armed.add(3.2, 0.0, first, relative=True)
    armed.add(3.3, 0.0)
    assert armed.timers.overtakers(0, 3, 4, 1.0) == []


def test_one_that_fired_pins_those_that_were_set_before_it_in_its_period(armed: _Set) -> None:
    first = _ended(0, waited=9.0)
    armed.add(3.0, 0.0, first, relative=True)
    armed.add(1.0, 0.0, first, relative=True)
    armed.add(3.0, 0.0, first, relative=True)
    armed.add(3.5, 0.0, QuietPeriod(1), relative=True)
    armed.timers.take(1)
    assert armed.timers.overtakers(0, 2, 3, 1.0) == [(1, 2)]


def test_whatever_was_set_after_a_late_timer_in_its_period_is_late_with_it(armed: _Set) -> None:
    first = _ended(0, waited=9.0)
    armed.add(2.0, 0.0, first, relative=True)
    armed.add(3.0, 0.0, first, relative=True)
    armed.add(3.2, 0.0, first, relative=True)
    armed.add(3.2, 0.0, first, relative=False)
    armed.add(3.5, 0.0, QuietPeriod(1), relative=True)
    assert armed.timers.put_after(1, 4) == 0.5
    assert [handle.when() for handle in armed.handles] == [2.0, 3.5, 3.7, 3.2, 3.5]
    assert armed.order() == [0, 3, 4, 1, 2]
    assert first.slack() == 8.5


def test_what_something_else_would_have_noticed_bounds_the_lateness() -> None:
    period = _ended(0, waited=9.0)
    period.cap_lateness(2.0)
    period.cap_lateness(5.0)
    assert period.slack() == 2.0
    period.spend(0.5)
    assert period.slack() == 1.5


def test_the_state_tells_apart_what_may_still_be_late(armed: _Set) -> None:
    current = QuietPeriod(5)
    armed.add(1.0, 0.0, _ended(2, waited=1.0), relative=True)
    armed.add(2.0, 0.0, current, relative=True)
    armed.add(3.0, 0.0)
    before = armed.timers.lateness_state(current)
    assert before == armed.timers.lateness_state(current)
    current.known_on_time = 2
    pinned = armed.timers.lateness_state(current)
    assert pinned != before
    current.started = (4.0,)
    assert armed.timers.lateness_state(current) != pinned
