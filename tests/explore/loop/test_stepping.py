"""One handle is one step, and between any two of them stands an instant for a cancel."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from handfast._explore.latency import latency
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.stepping import Stepper
from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import logs


class _Watching:
    """An observer that writes down every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def task_created(self, task: asyncio.Task[Any], number: int) -> None:
        self.calls.append(f"created {number}")

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        self.calls.append(f"before {instant}")

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        self.calls.append(f"after {instant}")

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        self.calls.append(f"cancelled at {instant}")

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        self.calls.append(f"chose {label}")

    def arrives(self, instant: int, channel: str, label: str) -> None:
        self.calls.append(f"arrives {label}")


async def _two_tasks() -> None:
    async def turn() -> None:
        await asyncio.sleep(0)

    await asyncio.gather(turn(), turn())


def test_an_observer_is_called_for_every_task_and_step() -> None:
    watching = _Watching()
    record = run(_two_tasks, Plan(), Settings(), observer=watching)
    assert [call for call in watching.calls if call.startswith("created")] == [
        "created 0",
        "created 1",
        "created 2",
    ]
    steps = [call for call in watching.calls if call.startswith("before")]
    assert steps[: record.steps] == [f"before {n}" for n in range(record.steps)]


def test_a_cancel_is_applied_at_its_instant_and_only_to_a_task_that_exists() -> None:
    watching = _Watching()
    cancels = (Cancel(0, 5), Cancel(3, 2), Cancel(99, 1))
    settings = Settings(cancel="tasks")
    record = run(_two_tasks, Plan(cancels=cancels), settings, observer=watching)
    assert record.cancelled == 1
    at = watching.calls.index("cancelled at 3")
    assert watching.calls[at - 1] == "after 3"
    assert watching.calls[at + 1] == "before 3"


def test_an_idle_loop_is_an_instant_too() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(5, "slept"))
        await asyncio.wait([task])
        assert task.cancelled(), "the cancel came while nothing was to do"

    idle = 2  # the program, the task, then nothing
    record = run(program, Plan(cancels=(Cancel(idle, 1),)), Settings(cancel="tasks"))
    assert (record.verdict, record.cancelled) == (None, 1)


async def _sleeps() -> None:
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))


async def _sleeps_alike() -> None:
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.01), asyncio.sleep(0.01))


async def _due_while_busy() -> None:
    asyncio.get_running_loop().call_later(0.01, print)
    for _ in range(3):
        await asyncio.sleep(0)


async def _timeout_while_busy() -> None:
    async with asyncio.timeout(0.01):
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("program", "label"),
    [
        (_sleeps, "timer sleep() of sleep fired together with the one that was due"),
        (_sleeps_alike, "fired one iteration later"),
        (_due_while_busy, "timer print fired first"),
        (_timeout_while_busy, "timer timeout() of _timeout_while_busy fired first"),
    ],
)
def test_the_label_of_a_choice_of_timers_names_them(program: Any, label: str) -> None:
    watching = _Watching()
    run(program, Plan(choices=((0, 1),)), Settings(), observer=watching)
    assert any(call.startswith("chose ") and call.endswith(label) for call in watching.calls)


def test_every_kind_of_departure_has_a_label() -> None:
    async def chain() -> None:
        await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)

    async def program() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        loop.channel("peer").post(_nothing, label="3 bytes", faults={"reset": _nothing})
        await asyncio.gather(latency(), chain(), asyncio.sleep(0.005), asyncio.sleep(0.03))

    labels: set[str] = set()
    for seed in range(60):
        watching = _Watching()
        plan = Plan(tail="random", seed=seed)
        run(program, plan, Settings(faults=("reset",)), observer=watching)
        labels |= set(watching.calls)
    text = "\n".join(sorted(labels))
    assert "took 5 ms before it started a timer" in text
    assert "was started late: timer sleep() of " in text
    assert "chose happens now: the answer to latency" in text
    assert "chose no external event has arrived yet" in text
    assert "chose reset instead of 3 bytes" in text
    assert "arrives 3 bytes" in text


def _nothing() -> None:
    """What comes makes no difference."""


def test_an_invariant_that_raises_or_returns_false_ends_the_run() -> None:
    def says_no() -> bool:
        return False

    def raises() -> None:
        raise KeyError("broken")

    for invariant, error_type in ((says_no, ""), (raises, "KeyError")):
        record = run(_two_tasks, Plan(), Settings(), invariant=invariant)
        assert record.verdict is not None
        assert (record.verdict.code, record.verdict.error_type) == ("HF442", error_type)


def test_a_handle_that_is_cancelled_in_its_batch_does_not_run() -> None:
    log: list[str] = []

    async def program() -> None:
        loop = asyncio.get_running_loop()
        second = None

        def cancel_second() -> None:
            assert second is not None
            second.cancel()

        loop.call_soon(cancel_second)
        second = loop.call_soon(log.append, "second")
        await asyncio.sleep(0)

    for observer in (None, _Watching()):
        assert run(program, Plan(), Settings(), observer=observer).verdict is None
    assert log == []


def test_an_exception_handler_of_the_program_gets_unhandled_errors() -> None:
    reported: list[str] = []

    async def program(*, own: bool) -> None:
        loop = asyncio.get_running_loop()
        if own:
            loop.set_exception_handler(lambda _, context: reported.append(context["message"]))
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    assert run(lambda: program(own=True), Plan(), Settings()).verdict is None
    assert len(reported) == 1
    verdict = run(lambda: program(own=False), Plan(), Settings()).verdict
    assert verdict is not None
    assert verdict.error_type == "ZeroDivisionError"


def test_a_hand_over_lands_between_any_two_handles() -> None:
    """Posted in the first step, by a thread: after `b`, before or after `A`, or after `B`."""

    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        thread = loop.channel("thread", between=True)
        thread.post(lambda: loop.enqueue(log.append, "T"), label="a result")

        def note(letter: str) -> None:
            log.append(letter)
            loop.call_soon(log.append, letter.upper())

        for letter in "ab":
            loop.call_soon(note, letter)
        for _ in range(3):
            await asyncio.sleep(0)

    assert logs(program) == {"abTAB", "abATB", "abABT"}


class _Handle:
    """As much of a handle as a step needs."""

    _cancelled = False
    _callback = None

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run


def test_a_stepper_needs_no_loop() -> None:
    log: list[str] = []
    more = [True, False]

    def hand_over() -> bool:
        log.append("between")
        return more.pop(0)

    stepper = Stepper(Settings(), _Plain())
    stepper.hand_over = hand_over
    ready: Any = deque(_Handle(partial(log.append, name)) for name in "abcd")
    ready[1] = _Handle(stepper.expect_between)
    stepper.run_batch(ready)
    stepper.pass_instant()
    assert log == ["a", "between", "c", "between", "d"]
    assert (stepper.steps, stepper.instant) == (4, 5)


class _Plain:
    def choose(self, kind: str, options: int, actors: object) -> int:
        return 0
