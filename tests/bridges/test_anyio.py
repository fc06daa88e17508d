"""anyio: a task group that a scope owns, and scopes used with anyio's own API."""

from __future__ import annotations

import asyncio

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from anyio.abc import SocketStream, TaskGroup, TaskStatus

import handfast
from handfast.bridges.anyio import task_group
from handfast.explore import explore, victim
from tests.support.stepping import run_on


async def waits(log: list[str], name: str, *, task_status: TaskStatus[str]) -> None:
    task_status.started(f"{name} is up")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0)
        log.append(f"{name} ended")


async def fails() -> None:
    await anyio.sleep(0)
    raise ValueError("boom")


def test_the_tasks_of_the_group_are_cancelled_and_joined_when_the_scope_closes(kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        scope = handfast.Scope("s", on_failure="report")
        group = await task_group(scope)
        for name in "ab":
            log.append(await group.start(waits, log, name))
        report = await scope.close()
        assert str(report) == "scope 's' closed: 1 finished"
        return sorted(log)

    assert run_on(kind, main()) == ["a ended", "a is up", "b ended", "b is up"]


def test_the_group_is_opened_in_one_task_used_in_a_second_and_closed_in_a_third() -> None:
    """anyio forbids this for a plain group: it must be left in the task that entered it."""

    async def main() -> tuple[str, bool]:
        log: list[str] = []
        scope = handfast.Scope("s")
        opened: list[TaskGroup] = []

        async def open_it() -> None:
            opened.append(await task_group(scope))

        async def use_it() -> str:
            up: str = await opened[0].start(waits, log, "a")
            return up

        await asyncio.create_task(open_it())
        up = await asyncio.create_task(use_it())
        report = await asyncio.create_task(scope.close())
        assert log == ["a ended"]
        return up, report.clean

    assert asyncio.run(main()) == ("a is up", True)


def test_a_failure_in_the_group_cancels_its_siblings_and_is_a_failure_of_the_scope() -> None:
    async def main() -> tuple[list[str], list[str]]:
        log: list[str] = []
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                group = await task_group(scope)
                await group.start(waits, log, "a")
                group.start_soon(fails)
                await anyio.sleep_forever()
        return log, [repr(error) for error in handfast.split_errors(caught.value).operational]

    assert asyncio.run(main()) == (["a ended"], ["ValueError('boom')"])


def test_a_group_can_be_released_before_its_scope_ends() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        async with handfast.Scope("s") as scope:
            group = await task_group(scope, name="listeners")
            await group.start(waits, log, "a")
            assert await scope.release(group)
            log.append("released")
        return log

    assert asyncio.run(main()) == ["a ended", "released"]


def test_a_library_of_anyio_serves_on_the_group() -> None:
    """A listener wants a task group for its connections: this one ends with the scope. Later things
    close first, so what the group uses is held before it."""

    async def echo(client: SocketStream) -> None:
        async with client:
            async for chunk in client:
                await client.send(chunk.upper())

    async def main() -> tuple[bytes, bool]:
        async with handfast.Scope("s") as scope:
            listener = await scope.hold(await anyio.create_tcp_listener(local_host="127.0.0.1"))
            group = await task_group(scope)
            group.start_soon(listener.serve, echo, group)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                await client.send(b"hello")
                answer = await client.receive()
            report = await scope.close()
        return answer, report.clean

    assert asyncio.run(main()) == (b"HELLO", True)


def test_explored_a_holder_cancelled_at_any_step_leaks_no_task() -> None:
    async def program() -> None:
        log: list[str] = []

        async def use(scope: handfast.Scope) -> None:
            group = await task_group(scope)
            await group.start(waits, log, "a")

        scope = handfast.Scope("s", on_failure="report")
        outcome = await victim(use(scope))
        report = await scope.close()
        assert report.clean
        assert outcome.cancelled or log == ["a ended"]

    assert explore(program, cancel=True, schedules=100).counterexample is None


def test_a_thread_of_anyio_reaches_the_loop_and_the_scope() -> None:
    async def double(n: int) -> int:
        await anyio.sleep(0)
        return 2 * n

    async def main() -> list[int]:
        async with handfast.Scope("s") as scope:

            def in_thread() -> list[int]:
                submitted = scope.submit(double, 2)
                return [anyio.from_thread.run(double, 1), submitted.result(timeout=10)]

            task = scope.spawn(anyio.to_thread.run_sync(in_thread))
        return task.result()

    assert asyncio.run(main()) == [2, 4]


def test_a_scope_lives_on_the_loop_of_a_blocking_portal() -> None:
    async def open_scope() -> handfast.Scope:
        return handfast.Scope("s", on_failure="report")

    with anyio.from_thread.start_blocking_portal() as portal:
        scope = portal.call(open_scope)
        assert scope.submit(anyio.sleep, 0).result(timeout=10) is None
        waiting = scope.submit(anyio.sleep_forever)
        assert scope.close_from_thread(timeout=10).clean
        assert waiting.cancelled()


def test_on_trio_the_error_says_what_to_do() -> None:
    async def main() -> None:
        await task_group(handfast.Scope("s"))

    with pytest.raises(handfast.errors.WrongLoop, match='backend="asyncio"'):
        anyio.run(main, backend="trio")
