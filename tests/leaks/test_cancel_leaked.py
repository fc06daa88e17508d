"""Bounded rounds of cancel: tasks are ended, and those that cannot be are reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from handfast._census.kinds.tasks import live_task
from handfast._leaks.cancel_leaked import cancel_leaked
from handfast._leaks.settle import run_steps, run_steps_here
from tests.leaks.loop_in_thread import loop_in_a_thread


async def for_ever() -> None:
    await asyncio.Event().wait()


async def fails_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("in the clean-up")


async def cleans_up_slowly(seen: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0.05)
        seen.append("cleaned up")
        raise


async def stubborn(gate: asyncio.Event) -> None:
    while not gate.is_set():
        try:
            await gate.wait()
        except asyncio.CancelledError:
            pass


@contextmanager
def idle_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()


def begun(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, None]]
) -> asyncio.Task[None]:
    async def begin() -> asyncio.Task[None]:
        task = asyncio.create_task(make())
        await asyncio.sleep(0)
        return task

    return loop.run_until_complete(begin())


def test_a_task_on_an_idle_loop_is_cancelled_and_joined() -> None:
    with idle_loop() as loop:
        task = begun(loop, for_ever)
        assert run_steps(cancel_leaked([live_task(task)])) == set()
        assert task.cancelled()


def test_one_cancel_leaves_a_clean_up_its_time() -> None:
    seen: list[str] = []
    with idle_loop() as loop:
        task = begun(loop, lambda: cleans_up_slowly(seen))
        run_steps(cancel_leaked([live_task(task)]))
    assert (seen, task.cancelling()) == (["cleaned up"], 1)


def test_an_error_in_the_clean_up_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with idle_loop() as loop:
        task = begun(loop, fails_when_cancelled)
        assert run_steps(cancel_leaked([live_task(task)])) == set()
        del task
    assert caplog.records == []


def test_a_task_that_swallows_every_cancel_is_removed_from_all_tasks() -> None:
    with idle_loop() as loop:
        gate = asyncio.Event()
        task = begun(loop, lambda: stubborn(gate))
        assert run_steps(cancel_leaked([live_task(task)])) == {id(task)}
        assert asyncio.all_tasks(loop) == set()
        gate.set()
        loop.run_until_complete(asyncio.wait({task}))


def test_a_task_on_a_loop_in_another_thread_is_ended_there() -> None:
    with loop_in_a_thread() as loop:
        made: list[asyncio.Task[None]] = []
        there = threading.Event()

        def make() -> None:
            made.append(loop.create_task(for_ever()))
            there.set()

        loop.call_soon_threadsafe(make)
        there.wait()
        assert run_steps(cancel_leaked([live_task(made[0])])) == set()
        assert made[0].cancelled()


def test_a_task_of_a_closed_loop_is_not_reported_as_swallowing() -> None:
    with idle_loop() as loop:
        task = begun(loop, for_ever)
    assert run_steps(cancel_leaked([live_task(task)])) == set()
    setattr(task, "_log_destroy_pending", False)  # noqa: B010


def test_a_loop_that_stops_itself_does_not_break_the_ending() -> None:
    with idle_loop() as loop:
        task = begun(loop, for_ever)
        loop.call_soon(loop.stop)
        assert run_steps(cancel_leaked([live_task(task)])) == set()
        assert task.cancelled()


def test_on_the_running_loop_the_same_holds() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        plain = asyncio.create_task(for_ever())
        stuck = asyncio.create_task(stubborn(gate))
        await asyncio.sleep(0)
        assert await run_steps_here(cancel_leaked([live_task(plain), live_task(stuck)])) == {
            id(stuck)
        }
        assert plain.cancelled()
        gate.set()
        await asyncio.wait({stuck})

    asyncio.run(main())
