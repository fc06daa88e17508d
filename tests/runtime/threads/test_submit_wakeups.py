"""S2.1 and S2.2: a submission wakes the loop, once for a batch, and asyncio has nothing to say."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest

import handfast
from tests.runtime.wrapped_loop import ForeignLoop, Watched


async def no_op() -> str:
    return "ran"


def test_the_bug_a_task_from_a_foreign_thread_does_not_wake_an_idle_loop() -> None:
    """S2.1, as reported: `ensure_future(loop=...)` leaves the loop asleep."""
    selector = Watched()
    with ForeignLoop(asyncio.SelectorEventLoop(selector)) as foreign:
        selector.asleep.wait()
        woken = selector.woken
        task = asyncio.ensure_future(no_op(), loop=foreign.loop)
        # Nothing was written to the pipe that wakes it: it would sleep until the end of days.
        wake_up: Any = getattr(foreign.loop, "_ssock")  # noqa: B009
        with pytest.raises(BlockingIOError):
            wake_up.recv(1)
        assert (selector.asleep.is_set(), selector.woken, task.done()) == (True, woken, False)
        foreign.turn()  # anything else that wakes it
        assert task.result() == "ran"


def test_a_submission_wakes_an_idle_loop() -> None:
    """S2.1: it is all that happens to this loop, and the answer comes."""
    selector = Watched()
    with ForeignLoop(asyncio.SelectorEventLoop(selector)) as foreign:
        scope = foreign.scope()
        selector.asleep.wait()
        woken = selector.woken
        assert scope.submit(no_op).result() == "ran"
        assert selector.woken == woken + 1
        scope.close_from_thread()


class Counted(asyncio.SelectorEventLoop):
    """Counts how often somebody wakes it."""

    wakes = 0

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self.wakes += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


def test_a_batch_wakes_the_loop_once() -> None:
    """S2.1: as long as the first wake-up is under way there is no need for a second."""
    loop = Counted()
    with ForeignLoop(loop) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        wakes = loop.wakes
        answers = [scope.submit(no_op) for _ in range(1000)]
        assert loop.wakes == wakes + 1
        gate.set()
        assert {answer.result() for answer in answers} == {"ran"}
        gate = foreign.block()
        wakes = loop.wakes
        answers = [scope.submit(no_op) for _ in range(10)]
        assert loop.wakes == wakes + 1
        gate.set()
        assert {answer.result() for answer in answers} == {"ran"}
        scope.close_from_thread()


class TasksAreTime(asyncio.SelectorEventLoop):
    """A clock that goes by the work: each task that is made takes a millisecond."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self.now += 0.001
        return super().call_soon(callback, *args, context=context)


def test_debug_mode_has_nothing_to_say_about_slow_callbacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S2.2: two thousand calls that have piled up are not started in one go."""
    loop = TasksAreTime()
    loop.set_debug(True)
    loop.slow_callback_duration = 0.75
    with caplog.at_level(logging.WARNING, "asyncio"), ForeignLoop(loop) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        answers = [scope.submit(no_op) for _ in range(2000)]
        gate.set()
        assert {answer.result() for answer in answers} == {"ran"}
        scope.close_from_thread()
    assert caplog.messages == []


def test_debug_mode_has_nothing_to_say_about_threads(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S2.2: it raises wherever a loop is touched in another thread than its own."""
    with caplog.at_level(logging.WARNING, "asyncio"), ForeignLoop(kind) as foreign:
        foreign.loop.set_debug(True)
        foreign.loop.slow_callback_duration = float("inf")
        scope = foreign.scope("debug", on_failure="report")

        async def fails() -> None:
            raise ValueError("expected")

        async def waits() -> None:
            await asyncio.get_running_loop().create_future()

        waiting = [scope.submit(waits) for _ in range(20)]
        failing = [scope.submit(fails) for _ in range(20)]
        running = [scope.submit(no_op) for _ in range(20)]
        assert all(answer.cancel() for answer in waiting[::2])
        assert all(isinstance(answer.exception(), ValueError) for answer in failing)
        assert all(answer.result() == "ran" for answer in running)
        report = scope.close_from_thread()
        assert report.clean
        assert len(report.cancelled) == 10
        assert all(answer.cancelled() for answer in waiting)
    assert caplog.messages == []


def test_a_blocked_debug_loop_can_be_closed_from_a_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S2.2: also while its host waits in `async with` for the children to end."""
    with caplog.at_level(logging.WARNING, "asyncio"), ForeignLoop() as foreign:
        foreign.loop.set_debug(True)
        foreign.loop.slow_callback_duration = float("inf")
        scopes: list[handfast.Scope] = []
        inside = threading.Event()

        async def host() -> None:
            async with handfast.Scope("hosted") as scope:
                scope.spawn(asyncio.sleep(1000), name="sleeper")
                scopes.append(scope)
                asyncio.get_running_loop().call_soon(later, 5, inside.set)

        def later(turns: int, then: Callable[[], object]) -> None:
            loop = asyncio.get_running_loop()
            loop.call_soon(*((later, turns - 1, then) if turns else (then,)))

        hosting = asyncio.run_coroutine_threadsafe(host(), foreign.loop)
        inside.wait()
        gate = foreign.block()
        report = scopes[0].close_from_thread(timeout=0.01)
        assert [straggler.name for straggler in report.stragglers] == ["sleeper"]
        gate.set()
        hosting.result()
        assert scopes[0].closed
    assert caplog.messages == []
