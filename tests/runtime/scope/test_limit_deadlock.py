"""A scope with a limit says so when its running tasks wait for those that wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast._asyncio_internals import mute_destroyed_warning
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast.explore import explore
from tests.support.stepping import Stepping, run_on, run_stepping

Parent = Callable[[Scope], Coroutine[Any, Any, None]]


async def child() -> None:
    await asyncio.sleep(0)


async def await_child(scope: Scope) -> None:
    await scope.spawn(child())


async def await_child_later(scope: Scope) -> None:
    task = scope.spawn(child())
    await asyncio.sleep(0.1)
    await task


async def gather_children(scope: Scope) -> None:
    await asyncio.gather(scope.spawn(child()), scope.spawn(child()))


async def await_child_in_another_task(scope: Scope) -> None:
    await asyncio.create_task(_join(scope.spawn(child())))


async def _join(task: asyncio.Task[None]) -> None:
    await task


async def await_child_of_a_key(scope: Scope) -> None:
    await asyncio.create_task(_join(KeyedTasks(scope).start("key", child)))


async def share_child(scope: Scope) -> None:
    """A cache whose fetches run in the scope of its callers."""
    await KeyedTasks(scope).share("key", child)


async def wait_for_children(scope: Scope) -> None:
    other = asyncio.create_task(asyncio.sleep(0.01))
    await asyncio.wait({scope.spawn(child()), other})


async def wait_for_one_child(scope: Scope) -> None:
    children = {scope.spawn(child()), scope.spawn(child())}
    await asyncio.wait(children, return_when=asyncio.FIRST_COMPLETED)


async def start_together(parent: Parent, scope: Scope) -> None:
    await asyncio.sleep(0)  # an eager child would take the place of the next parent
    await parent(scope)


async def run_parents(parent: Parent, limit: int, seconds: float = 60) -> list[str]:
    """The messages of a scope whose places are all taken by parents, until the first one."""
    messages: list[str] = []
    loop = asyncio.get_running_loop()
    said = asyncio.Event()

    def note(_: object, context: dict[str, Any]) -> None:
        messages.append(context["message"])
        said.set()

    loop.set_exception_handler(note)
    scope = Scope("s", limit=limit)
    for _ in range(limit):
        scope.spawn(start_together(parent, scope), name="parent")
    await asyncio.wait({asyncio.create_task(said.wait())}, timeout=seconds)
    said.set()
    await scope.close()
    return messages


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize(
    "parent",
    [
        await_child,
        await_child_later,
        gather_children,
        await_child_in_another_task,
        await_child_of_a_key,
        share_child,
        wait_for_children,
        wait_for_one_child,
    ],
)
def test_a_parent_that_awaits_its_child_is_named_with_both_lines(
    parent: Parent, limit: int, any_kind: str
) -> None:
    async def main() -> list[str]:
        return await run_parents(parent, limit)

    (message,) = run_on(any_kind, main())
    assert f"has limit={limit} and is stuck" in message
    assert "Task 'parent', created at" in message
    assert f"in {parent.__name__}" in message
    assert "for task 'child', created at" in message


async def with_timeout(scope: Scope) -> None:
    try:
        async with asyncio.timeout(50):
            await scope.spawn(child())
    except TimeoutError:
        pass


async def wait_for_either(scope: Scope) -> None:
    other = asyncio.create_task(asyncio.sleep(50))
    await asyncio.wait({scope.spawn(child()), other}, return_when=asyncio.FIRST_COMPLETED)


async def wait_with_timeout(scope: Scope) -> None:
    await asyncio.wait({scope.spawn(child())}, timeout=50)


async def work(scope: Scope) -> None:
    scope.spawn(child())
    await asyncio.sleep(50)


async def await_others(_: Scope) -> None:
    await asyncio.gather(asyncio.sleep(50), asyncio.create_task(asyncio.sleep(50)))


async def gather_child_and_other(scope: Scope) -> None:
    await asyncio.gather(asyncio.sleep(50), scope.spawn(child()))


async def await_child_that_is_cancelled(scope: Scope) -> None:
    task = scope.spawn(child())
    asyncio.get_running_loop().call_later(0.01, task.cancel)
    await asyncio.wait({task})


RIGHT = [
    with_timeout,
    wait_for_either,
    wait_with_timeout,
    work,
    await_others,
    await_child_that_is_cancelled,
]


@pytest.mark.parametrize("parent", RIGHT)
def test_right_code_is_not_reported(parent: Parent) -> None:
    async def program(_: Stepping) -> list[str]:
        return await run_parents(parent, 1)

    assert run_stepping(program) == []


def test_a_parent_is_not_reported_while_other_work_may_end_its_wait() -> None:
    """The other one in the gather may fail; when it has ended, the parent is reported."""

    async def program(stepping: Stepping) -> tuple[int, bool]:
        return len(await run_parents(gather_child_and_other, 1, 120)), stepping.loop.time() > 50

    assert run_stepping(program) == (1, True)


def test_looking_ends_after_some_time() -> None:
    """Timers without end would hide from the explorer that a program waits for ever."""

    async def main() -> None:
        async with Scope(limit=1) as scope:
            scope.spawn(asyncio.Event().wait())
            scope.spawn(child())

    found = explore(main, schedules=3)
    assert found.counterexample is not None
    assert found.counterexample.code == "HF431"


def test_a_limit_that_suffices_is_never_reported_and_one_that_does_not_always_is() -> None:
    """In every schedule: two parents and their children, with one place to spare, and without."""

    async def program(limit: int) -> int:
        messages: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: messages.append(context["message"]))
        scope = Scope("s", limit=limit)
        parents = [scope.spawn(await_child(scope), name="parent") for _ in range(2)]
        await asyncio.wait(parents, timeout=60)
        await scope.close()
        return len(messages)

    async def enough() -> None:
        assert await program(3) == 0

    async def too_few() -> None:
        assert await program(2) == 1

    for main in (enough, too_few):
        found = explore(main, schedules=100)
        assert found.counterexample is None, found.summary


def test_a_scope_that_is_not_stuck_stops_looking() -> None:
    async def main() -> list[Any]:
        async with Scope(limit=1) as scope:
            for _ in range(5):
                scope.spawn(child())
        return [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]

    assert asyncio.run(main()) == []


def test_it_is_said_once_also_if_more_tasks_come() -> None:
    async def program(stepping: Stepping) -> int:
        messages: list[str] = []
        stepping.loop.set_exception_handler(lambda _, context: messages.append(context["message"]))
        scope = Scope(limit=1)
        scope.supervise(asyncio.Event().wait)  # it needs no place
        scope.spawn(await_child(scope))
        for _ in range(3):
            await asyncio.sleep(100)
            scope.spawn(child())
        await scope.close()
        return len(messages)

    assert run_stepping(program) == 1


def test_a_task_that_has_its_turn_and_never_resumes_is_closed_without_an_error() -> None:
    """As the collector closes it when its loop was stopped in between."""

    async def program(_: Stepping) -> None:
        scope = Scope(limit=1)
        ending = asyncio.Event()
        scope.spawn(ending.wait())
        task = scope.spawn(asyncio.sleep(0))
        await asyncio.sleep(0)
        ending.set()
        await asyncio.sleep(0)  # the first one ends, and the turn of the second one has come
        wrapper_of(task).close()
        assert len(scope) == 0
        with pytest.raises(RuntimeError):  # there is nothing left to resume
            await task
        await scope.close()

    run_stepping(program)


def test_a_task_with_a_place_is_closed_without_an_error_when_its_loop_is() -> None:
    """Others wait for the place."""
    loop = asyncio.new_event_loop()

    async def main() -> Scope:
        scope = Scope(limit=1)
        for _ in range(2):
            scope.spawn(asyncio.sleep(3600))
        await asyncio.sleep(0)
        return scope

    scope = loop.run_until_complete(main())
    loop.close()
    for task in scope.tasks:
        mute_destroyed_warning(task)
        wrapper_of(task).close()
