"""on_failure="report": every failure that the program has not retrieved is reported. A5."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from handfast import Scope
from tests.runtime.scope.workshop import turns
from tests.support.stepping import run_on


async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("work")


def reports(kind: str, program: Callable[[Scope], Awaitable[None]]) -> list[str]:
    """What a program reports to the loop's exception handler."""
    reported: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: reported.append(repr(context["exception"])))
        scope = Scope("services", on_failure="report")
        await program(scope)
        await turns(8)
        await scope.close()
        loop.set_exception_handler(before)

    run_on(kind, main())
    return reported


def test_a_done_callback_of_the_program_does_not_keep_a_failure_from_being_reported(
    any_kind: str,
) -> None:
    """A5: it may have other reasons; here it drops the task from a set."""
    tasks: set[asyncio.Task[None]] = set()
    kept: list[asyncio.Task[None]] = []

    async def program(scope: Scope) -> None:
        task = scope.spawn(fail())
        tasks.add(task)
        kept.append(task)  # asyncio itself would report it when it is collected
        task.add_done_callback(tasks.discard)

    assert reports(any_kind, program) == ["ValueError('work')"]
    assert tasks == set()


def test_a_failure_that_a_done_callback_reads_is_not_reported(any_kind: str) -> None:
    """A5: in the callback, or in a task that it wakes."""

    async def program(scope: Scope) -> None:
        task = scope.spawn(fail())
        task.add_done_callback(lambda task: task.exception())
        woken = asyncio.Event()
        other = scope.spawn(fail())
        other.add_done_callback(lambda _: woken.set())
        await woken.wait()
        assert isinstance(other.exception(), ValueError)

    assert reports(any_kind, program) == []


@pytest.mark.parametrize("how", ["await", "wait", "gather", "shield", "wait_for", "as_completed"])
def test_a_failure_that_is_waited_for_is_not_reported(any_kind: str, how: str) -> None:
    """A5: also if `wait` gives the task to its caller only when others have ended too."""

    async def wait_for(task: asyncio.Task[Any]) -> Any:
        if how == "await":
            return await task
        if how == "wait":
            done, _ = await asyncio.wait({task, asyncio.ensure_future(turns(20))})
            for one in done:
                one.result()
            return None
        if how == "gather":
            return await asyncio.gather(task)
        if how == "shield":
            return await asyncio.shield(task)
        if how == "wait_for":
            return await asyncio.wait_for(task, 60)
        for first in asyncio.as_completed([task]):
            await first
        return None

    async def program(scope: Scope) -> None:
        with pytest.raises(ValueError, match="work"):
            await wait_for(scope.spawn(fail()))

    assert reports(any_kind, program) == []


def test_the_failure_of_a_held_resource_is_reported(any_kind: str) -> None:
    """A5: no caller of hold() or release() is there to get it."""

    class Resource:
        owner: asyncio.Task[Any] | None = None

        async def __aenter__(self) -> None:
            self.owner = asyncio.current_task()

        async def __aexit__(self, *_: object) -> None:
            raise OSError("leaving")

    async def program(scope: Scope) -> None:
        resource = Resource()
        await scope.hold(resource)
        assert resource.owner is not None
        resource.owner.cancel()  # as a task group inside of it does
        await turns(8)

    assert reports(any_kind, program) == ["OSError('leaving')"]
