"""Work that a scope waits for, at the end of its block or in its grace, may start more work."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

import handfast
from handfast.errors import ScopeClosed
from tests.runtime.scope.workshop import turns
from tests.support.stepping import Stepping, run_on, run_stepping


@contextlib.asynccontextmanager
async def resource(log: list[str]) -> AsyncIterator[str]:
    log.append("entered")
    yield "value"
    log.append("left")


# --- the end of the block ------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(4))
def test_a_block_ends_although_a_child_holds_a_resource_after_its_body(
    any_kind: str, steps: int
) -> None:
    """A1"""

    async def main() -> list[str]:
        log: list[str] = []

        async def child(scope: handfast.Scope) -> None:
            await turns(steps)
            assert await scope.hold(resource(log)) == "value"
            await turns(3)
            log.append("child ended")

        async with asyncio.timeout(60), handfast.Scope("s") as scope:
            scope.spawn(child(scope))
        return log

    assert run_on(any_kind, main()) == ["entered", "child ended", "left"]


def test_a_block_ends_although_a_child_supervises_a_service_after_its_body(any_kind: str) -> None:
    """A1"""

    async def main() -> list[str]:
        log: list[str] = []

        async def service() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                log.append("service ended")

        async def child(scope: handfast.Scope) -> None:
            await turns(3)
            scope.supervise(service)
            await turns(3)
            log.append("child ended")

        async with asyncio.timeout(60), handfast.Scope("s") as scope:
            scope.spawn(child(scope))
        return log

    assert run_on(any_kind, main()) == ["child ended", "service ended"]


def test_a_grace_ends_although_a_child_holds_a_resource_in_it() -> None:
    """A1, A21: the resource does not keep the scope open until the end of its grace."""

    async def program(stepping: Stepping) -> tuple[list[str], float]:
        log: list[str] = []
        scope = handfast.Scope("s", grace=60)

        async def child() -> None:
            await asyncio.sleep(1)
            await scope.hold(resource(log))
            await asyncio.sleep(1)

        scope.spawn(child())
        await scope.close()
        return log, stepping.loop.time()

    assert run_stepping(program) == (["entered", "left"], 2)


# --- the grace -----------------------------------------------------------------------------------


def test_in_the_grace_work_under_way_may_spawn_share_and_hold(any_kind: str) -> None:
    """A21"""

    async def main() -> tuple[list[str], str]:
        log: list[str] = []
        scope = handfast.Scope("s")
        keyed = handfast.KeyedTasks(scope)
        closing = asyncio.Event()

        async def job(name: str) -> str:
            await turns(2)
            log.append(name)
            return name

        async def work() -> None:
            await closing.wait()
            await scope.hold(resource(log))
            await scope.spawn(job("spawned"), name="spawned")
            log.append("shared " + await keyed.share("key", job, "job"))
            async with asyncio.TaskGroup() as group:
                group.create_task(spawn_in_a_group())

        async def spawn_in_a_group() -> None:
            scope.spawn(job("spawned in a group"), name="in a group")

        scope.spawn(work(), name="work")
        closer = asyncio.create_task(scope.close(grace=60))
        while not scope.closing:
            await asyncio.sleep(0)
        with pytest.raises(ScopeClosed, match="draining"):
            scope.spawn(job("an outsider"))
        closing.set()
        return log, str(await closer)

    log, report = run_on(any_kind, main())
    expected = ["entered", "spawned", "job", "shared job", "spawned in a group", "left"]
    assert log == expected
    assert report == "scope 's' closed: 5 finished"


def test_a_poller_that_spawns_jobs_drains() -> None:
    """A21: all that was in the queue when the close began is done."""

    async def program(_: Stepping) -> tuple[list[int], str]:
        queue: asyncio.Queue[int] = asyncio.Queue()
        done: list[int] = []
        async with handfast.Scope("jobs", limit=3, grace=60) as scope:

            async def job(number: int) -> None:
                await asyncio.sleep(1)
                done.append(number)

            async def poll() -> None:
                while not queue.empty():
                    scope.spawn(job(await queue.get()))
                    await asyncio.sleep(0.5)

            for number in range(5):
                queue.put_nowait(number)
            scope.spawn(poll())
        return done, str(await scope.close())

    assert run_stepping(program) == ([0, 1, 2, 3, 4], "scope 'jobs' closed: 6 finished")


def test_what_was_started_in_the_grace_is_cancelled_when_it_is_over(any_kind: str) -> None:
    """A21: with the rest, and it is in the report; no more work is accepted."""

    async def main() -> tuple[list[str], str]:
        scope = handfast.Scope("s")
        refused: list[str] = []

        async def idle() -> None:
            await asyncio.sleep(3600)

        async def work() -> None:
            while not scope.closing:
                await asyncio.sleep(0)
            scope.spawn(idle())
            try:
                await asyncio.sleep(3600)
            finally:
                with pytest.raises(ScopeClosed) as info:
                    scope.spawn(idle())
                refused.append(str(info.value))

        scope.spawn(work())
        report = await scope.close(grace=0.01)
        return refused, str(report)

    refused, report = run_on(any_kind, main())
    assert [text.rpartition(" ")[2] for text in refused] == ["cancelling"]
    assert report == "scope 's' closed: 2 cancelled"


def test_the_failure_of_a_task_that_was_started_in_the_grace_is_raised(any_kind: str) -> None:
    """A21: it is a failure of the scope as any other."""

    async def main() -> None:
        async def fail() -> None:
            raise ValueError("late")

        async def work(scope: handfast.Scope) -> None:
            while not scope.closing:
                await asyncio.sleep(0)
            scope.spawn(fail())
            await asyncio.sleep(3600)

        async with handfast.Scope("s", grace=60) as scope:
            scope.spawn(work(scope))

    with pytest.raises(ExceptionGroup) as info:
        run_on(any_kind, main())
    assert [repr(error) for error in info.value.exceptions] == ["ValueError('late')"]
