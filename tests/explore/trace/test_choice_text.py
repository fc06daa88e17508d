"""The text for what differs from a normal run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from handfast._explore.loop.external_events import Event
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.trace import choice_text


class Timer:
    """The part of a `TimerHandle` that is read."""

    def __init__(self, callback: Any, *args: Any) -> None:
        self._callback = callback
        self._args = args


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.mark.parametrize(
    ("count", "due", "text"),
    [
        (1, 0, "the loop was 10 ms late: timer min fired first"),
        (2, 1, "the loop was 10 ms late: timer max fired together with the one that was due"),
        (3, 2, "the loop was 10 ms late: timer sum fired together with the 2 that were due"),
        (2, 0, "the loop was 10 ms late: timer min, max fired first"),
        (4, 0, "the loop was 10 ms late: timer min, max and 2 more fired first"),
        (
            1,
            2,
            "the loop read the clock just before it was time: timer max fired one iteration later",
        ),
    ],
)
def test_timers_that_fire_early_or_late_are_named(count: int, due: int, text: str) -> None:
    timers = [Timer(callback) for callback in (min, max, sum, len)]
    assert choice_text.timers_fired(timers, count, due, 0.01) == text


def test_a_timer_is_named_after_the_call_and_the_task_that_waits() -> None:
    names: list[str] = []

    async def program() -> None:
        async def naps() -> None:
            await asyncio.sleep(1)

        async def bounded() -> None:
            async with asyncio.timeout(2):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(naps()), asyncio.create_task(bounded())]
        asyncio.get_running_loop().call_later(3, print)
        await asyncio.sleep(0)
        loop: Any = asyncio.get_running_loop()
        names.extend(choice_text._timer_name(timer) for timer in loop.timers())
        for task in tasks:
            task.cancel()

    run(program, Plan(), Settings())
    assert names == ["sleep() of naps", "timeout() of bounded", "print"]


def test_a_timer_whose_future_has_no_waiter_is_named_after_its_callback(
    loop: asyncio.AbstractEventLoop,
) -> None:
    future = loop.create_future()
    future.add_done_callback(print)
    assert choice_text._timer_name(Timer(min, future)) == "min"


def test_a_timer_that_was_started_late_is_named_with_the_one_before_it() -> None:
    text = choice_text.timer_delayed([Timer(min), Timer(max)], 0, 1)
    assert text == "timer min was started late: timer max fired first"


def test_durations_are_in_milliseconds() -> None:
    assert [choice_text.milliseconds(s) for s in (0.01, 0.1, 0.0125)] == [
        "10 ms",
        "100 ms",
        "12.5 ms",
    ]


def test_outside_a_task_the_running_code_has_no_name(loop: asyncio.AbstractEventLoop) -> None:
    assert choice_text.running_name(loop) == "the code"


def test_an_arrival_is_named_with_its_fault() -> None:
    event = Event.__new__(Event)
    event.label = "3 bytes"
    assert choice_text.arrived(event, "") == "happens now: 3 bytes"
    assert choice_text.arrived(event, "reset") == "reset instead of 3 bytes"
    assert choice_text.arrived(None, "") == "no external event has arrived yet"
