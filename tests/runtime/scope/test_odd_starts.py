"""Clocks that a program replaces, and a start without stack or memory, harm nothing (A24)."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import handfast
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.task_registry import TaskRegistry
from tests.runtime.scope.workshop import turns
from tests.support.stepping import new_loop, run_on

# --- the clock -----------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before the scope", "after the scope"])
def test_the_time_of_a_loop_may_be_replaced_on_the_instance(when: str) -> None:
    """A24: the grace is neither skipped nor endless."""

    async def main() -> tuple[str, bool]:
        loop = asyncio.get_running_loop()

        def replace_clock() -> None:
            setattr(loop, "time", lambda: time.monotonic() - 1e6)  # noqa: B010

        if when == "before the scope":
            replace_clock()
        scope = handfast.Scope("s")
        replace_clock()
        scope.spawn(asyncio.sleep(0.02), name="quick")
        scope.spawn(asyncio.sleep(3600), name="slow")
        report = await scope.close(grace=0.1, timeout=60)
        ages = [straggler.age for straggler in report.stragglers]
        return str(report), ages == []

    loop = new_loop("stock")
    try:
        assert loop.run_until_complete(main()) == (
            "scope 's' closed: 1 finished, 1 cancelled",
            True,
        )
    finally:
        loop.close()


def test_the_age_of_a_straggler_is_right_with_a_replaced_clock() -> None:
    """A24"""

    async def main() -> float:
        now = 500.0
        loop = asyncio.get_running_loop()
        setattr(loop, "time", lambda: now)  # noqa: B010
        scope = handfast.Scope("s")
        release = asyncio.Event()

        async def swallow() -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    pass

        scope.spawn(swallow())
        await turns(2)
        now = 530.0
        report = await scope.close(timeout=0)
        release.set()
        await turns(5)
        return report.stragglers[0].age

    loop = new_loop("stock")
    try:
        assert loop.run_until_complete(main()) == 30
    finally:
        loop.close()


# --- no stack, no memory -------------------------------------------------------------------------


async def idle() -> None:
    await asyncio.sleep(3600)


def without_stack(call: Callable[[], Any], results: list[Any]) -> None:
    """Make `call` at each depth near the end of the stack. Note each value that it returns."""

    def down() -> None:
        try:
            down()
        except RecursionError:
            pass
        try:
            results.append(call())
        except RecursionError:
            results.append(None)

    limit, hook = sys.getrecursionlimit(), sys.unraisablehook
    depth = 0
    frame: Any = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    # What is dropped there may have a `__del__` that needs a stack. pytest's hook needs one, too.
    sys.unraisablehook = id
    sys.setrecursionlimit(depth + 60)
    try:
        down()
    finally:
        sys.setrecursionlimit(limit)
        sys.unraisablehook = hook


def run_quietly(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
    """asyncio itself complains about the tasks that it could not start, and Python about a coroutine
    for whose `close` there was no stack."""
    loop.set_exception_handler(lambda *_: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.run_until_complete(main)
        gc.collect()
    loop.close()


def test_a_spawn_without_stack_raises_and_leaves_the_scope_as_it_was(any_kind: str) -> None:
    """A24: RecursionError at any depth; no entry without a task."""

    async def main() -> None:
        scope = handfast.Scope("s")
        tasks: list[asyncio.Task[None] | None] = []
        without_stack(lambda: scope.spawn(idle()), tasks)
        started = [task for task in tasks if task is not None]
        assert None in tasks
        assert started
        assert set(scope.tasks) == {task for task in started if not task.done()}
        assert len(scope) == len(scope.tasks)
        report = await scope.close()
        assert not report.stragglers
        assert len(scope) == 0

    run_quietly(new_loop(any_kind), main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
@pytest.mark.parametrize("kind", ["eager", "wrapping"])
def test_a_tracer_that_needs_stack_leaves_no_entry(kind: str) -> None:
    """A24: it is called at the first run of each line, as coverage is; those that take an entry back
    run for the first time where there is hardly any stack."""
    monitoring: Any = getattr(sys, "monitoring", None)
    tool = 3

    def down(frames: int) -> None:
        if frames:
            down(frames - 1)

    def on_line(*_: object) -> Any:
        down(10)
        return monitoring.DISABLE

    async def main() -> None:
        scope = handfast.Scope("s")
        scope.spawn(idle())
        without_stack(lambda: scope.spawn(idle()), [])
        assert len(scope) == len(scope.tasks)
        await scope.close()

    monitoring.use_tool_id(tool, "test")
    try:
        monitoring.register_callback(tool, monitoring.events.LINE, on_line)
        for function in (TaskRegistry.start, TaskRegistry._create_task):
            monitoring.set_local_events(tool, function.__code__, monitoring.events.LINE)
        run_quietly(new_loop(kind), main())
    finally:
        for function in (TaskRegistry.start, TaskRegistry._create_task):
            monitoring.set_local_events(tool, function.__code__, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no task starts at once before 3.12")
@pytest.mark.parametrize("frames", [0, 8, 30])
@pytest.mark.parametrize("start", ["spawn", "replace"])
def test_a_first_step_without_stack_leaves_no_entry(start: str, frames: int) -> None:
    """A24: a factory that starts the task at once, in so many frames of its own. A coroutine that
    is resumed without stack ends there, without its `finally`."""

    def factory(loop: Any, coro: Any, left: int = frames, **options: Any) -> Any:
        if left:
            return factory(loop, coro, left - 1, **options)
        eager: Any = asyncio.Task
        return eager(coro, loop=loop, eager_start=True, **options)

    async def main() -> None:
        scope = handfast.Scope("s")
        keyed = handfast.KeyedTasks(scope)
        keys = iter(range(1000))
        tasks: list[asyncio.Task[None] | None] = []

        def call() -> Any:
            return scope.spawn(idle()) if start == "spawn" else keyed.start(next(keys), idle)

        without_stack(call, tasks)
        await turns(1)
        pending = {task for task in tasks if task is not None and not task.done()}
        assert None in tasks
        assert pending
        assert set(scope.tasks) == pending
        assert len(scope) == len(pending)
        assert len(keyed) == (len(pending) if start == "replace" else 0)
        assert (await scope.close()).stragglers == ()
        assert len(keyed) == len(scope) == 0

    loop = new_loop("stock")
    loop.set_task_factory(factory)
    run_quietly(loop, main())


def test_a_cancel_without_stack_raises_and_leaves_the_task_as_it_was() -> None:
    """A24: a task that has not started is entered before its cancel. (A task that waits for a
    future is another matter: asyncio itself loses the call that would wake it.)"""

    async def main() -> None:
        scope = handfast.Scope("s")
        task = scope.spawn(idle())
        cancelled: list[bool | None] = []
        without_stack(task.cancel, cancelled)
        assert True in cancelled
        await turns(3)
        assert task.cancelled()
        assert len(scope) == 0
        assert (await scope.close()).clean

    run_on("stock", main())


@pytest.mark.parametrize("start", ["spawn", "supervise", "hold", "replace"])
def test_a_task_that_cannot_be_created_leaves_no_entry(
    monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    """A24: MemoryError in the constructor of the task."""

    def no_memory(*_: object, **__: object) -> Any:
        raise MemoryError

    class Resource:
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None: ...

    async def main() -> None:
        scope = handfast.Scope("s")
        keyed = handfast.KeyedTasks(scope)
        with monkeypatch.context() as patch:
            patch.setattr(task_creation, "new_task", no_memory)
            with pytest.raises(MemoryError):
                if start == "spawn":
                    scope.spawn(idle())
                elif start == "supervise":
                    scope.supervise(idle)
                elif start == "hold":
                    await scope.hold(Resource())
                else:
                    await keyed.replace("key", idle)
        gc.collect()
        assert (len(scope), "key" in keyed) == (0, False)
        assert scope._registry.services == set()
        scope.spawn(idle())
        await keyed.replace("key", idle)
        assert len((await scope.close()).cancelled) == 2

    run_on("stock", main())


def test_a_task_factory_that_fails_leaves_no_entry() -> None:
    """A24"""

    def no_memory(*_: object, **__: object) -> Any:
        raise MemoryError

    async def main() -> None:
        scope = handfast.Scope("s")
        loop = asyncio.get_running_loop()
        loop.set_task_factory(no_memory)
        try:
            with pytest.raises(MemoryError):
                scope.spawn(idle())
        finally:
            loop.set_task_factory(None)
        assert len(scope) == 0
        assert (await scope.close()).clean

    run_on("stock", main())


def test_a_memory_error_in_the_first_step_is_a_failure_as_any_other(any_kind: str) -> None:
    """A24"""

    async def fail() -> None:
        raise MemoryError

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scope.spawn(idle())
            scope.spawn(fail())

    with pytest.raises(ExceptionGroup) as info:
        run_on(any_kind, main())
    assert [type(error) for error in info.value.exceptions] == [MemoryError]
