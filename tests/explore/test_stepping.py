"""One handle is one step, and between any two of them stands an instant for a cancel."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from holdfast.explore.latency import latency
from holdfast.explore.loop import ExploredLoop
from holdfast.explore.plan import Cancel, Plan, Settings
from holdfast.explore.run import run
from holdfast.explore.stepping import Stepping
from tests.explore.walk import logs


class _Watching:
    """An observer that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def born(self, task: asyncio.Task[Any], number: int) -> None:
        self.told.append(f"born {number}")

    def before(self, instant: int, handle: asyncio.Handle, queued: int) -> None:
        self.told.append(f"before {instant}")

    def after(self, instant: int, handle: asyncio.Handle, ready: deque[asyncio.Handle]) -> None:
        self.told.append(f"after {instant}")

    def cancelled(self, instant: int, task: asyncio.Task[Any]) -> None:
        self.told.append(f"cancelled at {instant}")

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        self.told.append(f"chose {label}")

    def arrives(self, instant: int, channel: str, label: str) -> None:
        self.told.append(f"arrives {label}")


async def _two_tasks() -> None:
    async def turn() -> None:
        await asyncio.sleep(0)

    await asyncio.gather(turn(), turn())


def test_an_observer_is_told_of_every_task_and_step() -> None:
    watching = _Watching()
    record = run(_two_tasks, Plan(), Settings(), observer=watching)
    assert [told for told in watching.told if told.startswith("born")] == [
        "born 0",
        "born 1",
        "born 2",
    ]
    steps = [told for told in watching.told if told.startswith("before")]
    assert steps[: record.steps] == [f"before {n}" for n in range(record.steps)]


def test_a_cancel_comes_at_its_instant_and_only_to_a_task_that_is_there() -> None:
    watching = _Watching()
    cancels = (Cancel(0, 5), Cancel(3, 2), Cancel(99, 1))
    settings = Settings(cancel="tasks")
    record = run(_two_tasks, Plan(cancels=cancels), settings, observer=watching)
    assert record.cancelled == 1
    at = watching.told.index("cancelled at 3")
    assert watching.told[at - 1] == "after 3"
    assert watching.told[at + 1] == "before 3"


def test_an_idle_loop_is_an_instant_too() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(5, "slept"))
        await asyncio.wait([task])
        assert task.cancelled(), "the cancel came while nothing was to do"

    idle = 2  # the program, the task, then nothing
    record = run(program, Plan(cancels=(Cancel(idle, 1),)), Settings(cancel="tasks"))
    assert (record.verdict, record.cancelled) == (None, 1)


def test_a_departure_is_told_in_words() -> None:
    async def program() -> None:
        await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))

    watching = _Watching()
    run(program, Plan(choices=((0, 1),)), Settings(), observer=watching)
    assert "chose 2 timers fire together instead of 1" in watching.told


def test_every_kind_of_departure_has_its_words() -> None:
    async def chain() -> None:
        await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)

    async def program() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ExploredLoop)
        loop.channel("peer").post(_nothing, label="3 bytes", faults={"reset": _nothing})
        await asyncio.gather(latency(), chain(), asyncio.sleep(0.005), asyncio.sleep(0.03))

    told: set[str] = set()
    for seed in range(60):
        watching = _Watching()
        plan = Plan(tail="random", seed=seed)
        run(program, plan, Settings(faults=("reset",)), observer=watching)
        told |= set(watching.told)
    said = "\n".join(sorted(told))
    assert "is slow by 0.005 s before it sets a timer" in said
    assert "chose a timer was set late and comes after the one at 1024.03" in said
    assert "chose the answer to latency comes now" in said
    assert "chose nothing from outside has come yet" in said
    assert "chose reset instead of 3 bytes" in said
    assert "arrives 3 bytes" in said


def _nothing() -> None:
    """What comes makes no difference."""


def test_model_wild_lets_any_handle_go_first() -> None:
    watching = _Watching()
    log: list[int] = []

    async def program() -> None:
        async def note(number: int) -> None:
            log.append(number)

        await asyncio.gather(note(1), note(2))

    run(program, Plan(choices=((0, 1),)), Settings(model="wild"), observer=watching)
    assert log == [2, 1]
    assert "chose 2" in watching.told, "the actor is the task, by its number"


def test_model_wild_has_a_step_limit_and_cancels_too() -> None:
    async def endless() -> None:
        while True:
            await asyncio.sleep(0)

    record = run(endless, Plan(), Settings(model="wild", step_limit=50))
    assert record.verdict is not None
    assert record.verdict.code == "HF432"
    cancelled = run(
        _two_tasks, Plan(cancels=(Cancel(2, 1),)), Settings(model="wild", cancel="tasks")
    )
    assert cancelled.cancelled == 1


def test_the_actor_of_a_callback_is_its_name() -> None:
    class Decider:
        seen: Sequence[object] = ()

        def choose(self, kind: str, options: int, actors: Callable[[], Sequence[object]]) -> int:
            Decider.seen = [*Decider.seen, *actors()]
            return 0

    async def program() -> None:
        loop = asyncio.get_running_loop()
        seen: list[int] = []
        loop.call_soon(seen.append, 1)
        loop.call_soon(_Callable())
        foreign = asyncio.Task(asyncio.sleep(0))  # not by way of the loop: it has no number
        await foreign

    run(program, Plan(), Settings(model="wild"), decides=Decider())
    assert "list.append" in Decider.seen
    assert "_Callable" in Decider.seen


class _Callable:
    def __call__(self) -> None:
        """Has no name of its own."""


@pytest.mark.parametrize("model", ["strict", "wild"])
def test_an_invariant_that_raises_or_says_no_ends_the_run(model: Any) -> None:
    def says_no() -> bool:
        return False

    def raises() -> None:
        raise KeyError("broken")

    for invariant, error_type in ((says_no, ""), (raises, "KeyError")):
        record = run(_two_tasks, Plan(), Settings(model=model), invariant=invariant)
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


def test_a_handler_of_the_programs_own_takes_what_nobody_handles() -> None:
    told: list[str] = []

    async def program(*, own: bool) -> None:
        loop = asyncio.get_running_loop()
        if own:
            loop.set_exception_handler(lambda _, context: told.append(context["message"]))
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    assert run(lambda: program(own=True), Plan(), Settings()).verdict is None
    assert len(told) == 1
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


def test_what_a_loop_must_bring_itself_is_said() -> None:
    class Bare(Stepping):
        def __init__(self) -> None:
            self._ready = deque()

    bare = Bare()
    bare.prepare(Settings(), _Plain())
    assert not bare._something_ready()
    assert not bare._asks_between()
    bare._hand_over()
    for method in (bare.timers, bare.left_outside):
        with pytest.raises(NotImplementedError):
            method()


class _Plain:
    def choose(self, kind: str, options: int, actors: object) -> int:
        return 0
