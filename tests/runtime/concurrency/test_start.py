"""`Scope.start`: wait until a task is ready; its errors go to the caller until then, and later not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from handfast import Scope
from handfast.errors import HandfastError, ScopeClosed, WrongLoop
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def serve(ready: Callable[[int], None], port: int, *, log: list[str] | None = None) -> None:
    log = [] if log is None else log
    log.append("entered")
    try:
        await asyncio.sleep(0)
        ready(port)
        await asyncio.get_running_loop().create_future()
    finally:
        await asyncio.sleep(0)
        log.append("left")


async def fail(ready: Callable[[int], None], *, after_ready: bool) -> None:
    await asyncio.sleep(0)
    if after_ready:
        ready(1)
        await asyncio.sleep(1)
    raise ValueError("work")


async def end(ready: Callable[[None], None]) -> None:
    await asyncio.sleep(0)


def test_start_returns_the_value_and_the_task_runs_on(any_kind: str) -> None:
    async def main() -> None:
        log: list[str] = []
        scope = Scope("servers")
        assert await scope.start(serve, 8080, log=log) == 8080
        assert [task.get_name() for task in scope.tasks] == ["serve"]
        assert str(await scope.close()) == "scope 'servers' closed: 1 cancelled"
        assert log == ["entered", "left"]

    run_on(any_kind, main())


async def fail_at_once(ready: Callable[[int], None]) -> None:
    ready(1)
    raise ValueError("work")


async def fail_in_clean_up(ready: Callable[[int], None]) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        ready(1)
        raise ValueError("work")


@pytest.mark.parametrize(
    ("function", "cancelled"),
    [(fail_at_once, False), (fail_at_once, True), (fail_in_clean_up, True)],
)
def test_an_error_after_ready_is_reported_while_start_still_waits(
    function: Any, cancelled: bool, any_kind: str
) -> None:
    """A5: the caller does not read it, and it was left to the garbage collector."""

    async def main() -> list[str]:
        reported: list[str] = []
        handler = lambda _loop, context: reported.append(context["message"])  # noqa: E731
        asyncio.get_running_loop().set_exception_handler(handler)
        scope = Scope("servers", on_failure="report")
        caller = asyncio.create_task(scope.start(function))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if cancelled:
            caller.cancel()
        await asyncio.wait({caller})
        await scope.close()
        return reported

    (message,) = run_on(any_kind, main())
    assert message.startswith("a task of scope 'servers'")


def test_an_error_before_ready_is_raised_by_start_and_not_by_the_scope(any_kind: str) -> None:
    async def main() -> None:
        async with Scope("servers") as scope:
            with pytest.raises(ValueError, match="work"):
                await scope.start(fail, after_ready=False)

    run_on(any_kind, main())


def test_an_error_after_ready_is_the_scope_s() -> None:
    async def main(_: Stepping) -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("servers") as scope:
                assert await scope.start(fail, after_ready=True) == 1
                await asyncio.sleep(3600)
        assert [str(error) for error in caught.value.exceptions] == ["work"]

    run_stepping(main)


def test_a_function_that_ends_without_ready_is_an_error(any_kind: str) -> None:
    async def main() -> None:
        async with Scope("servers") as scope:
            with pytest.raises(HandfastError, match=r"'end' has ended without a call of ready\(\)"):
                await scope.start(end)

    run_on(any_kind, main())


def test_ready_twice_is_an_error_in_the_function() -> None:
    async def twice(ready: Callable[[int], None]) -> None:
        ready(1)
        ready(2)

    async def main(_: Stepping) -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("servers") as scope:
                assert await scope.start(twice) == 1
        assert "was called twice" in str(caught.value.exceptions[0])

    run_stepping(main)


def test_ready_from_another_thread_is_refused() -> None:
    errors: list[BaseException] = []

    async def threaded(ready: Callable[[int], None]) -> None:
        def call() -> None:
            try:
                ready(1)
            except WrongLoop as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        ready(2)

    async def main(_: Stepping) -> int:
        async with Scope("servers") as scope:
            return await scope.start(threaded)

    assert run_stepping(main) == 2
    assert len(errors) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_caller_that_is_cancelled_leaves_no_half_started_task(times: int) -> None:
    """At every step: cancelled before ready, the task has ended; after it, it is the scope's."""

    async def program(stepping: Stepping) -> tuple[bool, list[str], int]:
        log: list[str] = []
        scope = Scope("servers", on_failure="report")

        async def start() -> int:
            return await scope.start(serve, 1, log=log)

        victim = stepping.victim(asyncio.create_task(start()))
        await asyncio.wait({victim})
        left = len(scope)
        cancelled = victim.cancelled()
        await scope.close()
        assert log in ([], ["entered", "left"])
        return cancelled, log, left

    runs = list(cancel_everywhere(program, times=times))
    assert len(runs) > 4
    # A cancel may come when ready was called and the caller has not resumed: the task runs then.
    assert {left for cancelled, _, left in runs if not cancelled} == {1}
    assert (True, [], 0) in runs
    assert all(left == 0 for cancelled, _, left in runs if cancelled)


@pytest.mark.parametrize("by", ["scope", "other code"])
def test_a_task_that_is_cancelled_while_it_starts_says_by_whom(by: str) -> None:
    async def slow(ready: Callable[[int], None]) -> None:
        await asyncio.sleep(10)

    async def main(_: Stepping) -> None:
        scope = Scope("servers", on_failure="report")
        starting = asyncio.create_task(scope.start(slow))
        await asyncio.sleep(1)
        if by == "scope":
            await scope.close()
        else:
            scope.tasks[0].cancel()
        expected = ScopeClosed if by == "scope" else HandfastError
        with pytest.raises(expected, match=r"was starting|was cancelled by other code"):
            await starting
        await scope.close()

    run_stepping(main)


def test_wrong_arguments_are_refused_at_the_call() -> None:
    def synchronous(ready: Any) -> None: ...

    async def main(_: Stepping) -> None:
        scope = Scope("servers")
        with pytest.raises(TypeError, match="start"):
            await scope.start(5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="takes an async function, but its call gave None"):
            await scope.start(synchronous)  # type: ignore[arg-type]
        await scope.close()
        with pytest.raises(ScopeClosed, match=r"start\(serve\) refused"):
            await scope.start(serve, 1)

    run_stepping(main)
