"""`Scope.cancel`: cancels now, without waiting; the block or the closer joins."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from handfast import Scope
from handfast.errors import ScopeClosed
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def work(log: list[str], name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        log.append(name)


def test_the_block_joins_what_was_cancelled_and_ends_without_an_error(any_kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        async with Scope("batch") as scope:
            task = scope.spawn(work(log, "task"))
            await asyncio.sleep(0)
            scope.cancel()
            assert not task.done()
            with pytest.raises(ScopeClosed):
                scope.spawn(asyncio.sleep(0))
        assert task.cancelled()
        return [*log, "after"]

    assert run_on(any_kind, main()) == ["task", "after"]


def test_a_child_ends_the_block_in_which_the_body_waits(any_kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []

        async def child(scope: Scope) -> None:
            scope.cancel()

        async with Scope("batch") as scope:
            scope.spawn(child(scope))
            await work(log, "body")
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        await asyncio.sleep(0)  # no cancel is left over
        return log

    assert run_on(any_kind, main()) == ["body"]


@pytest.mark.parametrize("kept", [False, True])
def test_a_task_that_cancels_its_own_scope_is_cancelled_if_it_goes_on(
    any_kind: str, kept: bool
) -> None:
    async def go_on(scope: Scope) -> None:
        scope.cancel()
        await asyncio.Event().wait()

    async def main() -> bool:
        scope = Scope("s")
        if kept:
            task = scope.spawn(go_on(scope))
            await asyncio.sleep(0)
            assert not (await scope.close()).stragglers
        else:
            async with scope:
                task = scope.spawn(go_on(scope))
        return task.cancelled()

    assert run_on(any_kind, main())


def test_a_task_that_cancels_its_own_scope_may_end_with_a_result(any_kind: str) -> None:
    async def end(scope: Scope) -> str:
        scope.cancel()
        return "result"

    async def main() -> str:
        async with Scope("s") as scope:
            task = scope.spawn(end(scope))
        return task.result()

    assert run_on(any_kind, main()) == "result"


def test_the_closer_of_a_kept_scope_joins_and_leaves_what_is_held(any_kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []

        @contextlib.asynccontextmanager
        async def session() -> AsyncIterator[None]:
            yield
            log.append("session")

        scope = Scope("bot")
        await scope.hold(session())
        scope.spawn(work(log, "task"))
        await asyncio.sleep(0)
        scope.cancel()
        scope.cancel()
        assert log == []
        report = await scope.aclose()
        assert (len(report.cancelled), report.clean, scope.closed) == (1, True, True)
        return log

    assert run_on(any_kind, main()) == ["task", "session"]


def test_a_cancel_ends_the_grace_of_a_close_under_way() -> None:
    async def program(stepping: Stepping) -> float:
        scope = Scope("bot")
        scope.spawn(asyncio.sleep(3600))
        closer = asyncio.create_task(scope.close(grace=60))
        await asyncio.sleep(5)
        scope.cancel()
        assert len((await closer).cancelled) == 1
        return stepping.loop.time()

    assert run_stepping(program) == pytest.approx(5)


def test_a_cancel_from_outside_is_not_taken_for_that_of_the_scope() -> None:
    """A cancel of the host at every step: it is raised after the block, exactly if there was one."""

    async def program(stepping: Stepping) -> tuple[bool, list[str]]:
        log: list[str] = []

        async def host() -> None:
            async with Scope("batch") as scope:
                scope.spawn(work(log, "task"))
                await asyncio.sleep(0)
                scope.cancel()
                await work(log, "body")

        task = stepping.victim(asyncio.create_task(host()))
        await asyncio.wait({task})
        assert task.cancelling() == int(stepping.cancelled)
        return task.cancelled() == stepping.cancelled, log

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 4
    assert all(right for right, _ in outcomes)
    assert sorted(outcomes[-1][1]) == ["body", "task"]


# --- a scope that is held -------------------------------------------------------------------


def test_a_held_scope_is_cancelled_when_its_holder_is_closed() -> None:
    """Without a grace `close` cancels at once; the tasks of a held scope are no exception."""

    async def program(stepping: Stepping) -> tuple[bool, float]:
        scope = Scope("bot")
        jobs = await scope.hold(Scope("jobs"))
        jobs.spawn(asyncio.sleep(5))
        report = await scope.close()
        return report.clean, stepping.loop.time()

    assert run_stepping(program) == (True, 0)


@pytest.mark.parametrize(("grace", "ends"), [(60, 5), (2, 2)])
def test_a_held_scope_has_the_rest_of_the_grace_when_the_services_have_ended(
    grace: float, ends: float
) -> None:
    async def program(stepping: Stepping) -> float:
        log: list[str] = []
        scope = Scope("bot")
        jobs = await scope.hold(Scope("jobs"))
        scope.supervise(work, log, "poller")
        jobs.spawn(asyncio.sleep(5))
        await asyncio.sleep(0)
        closer = asyncio.create_task(scope.close(grace=grace))
        await asyncio.sleep(1)
        assert log == ["poller"]
        assert (await closer).clean
        return stepping.loop.time()

    assert run_stepping(program) == pytest.approx(ends)


def test_leaving_the_block_waits_for_the_tasks_of_a_held_scope() -> None:
    async def program(stepping: Stepping) -> list[str]:
        log: list[str] = []
        async with Scope("bot") as scope:
            jobs = await scope.hold(Scope("jobs"))
            deeper = await jobs.hold(Scope("deeper"))
            scope.supervise(work, log, "poller")
            jobs.spawn(asyncio.sleep(100))
            deeper.spawn(asyncio.sleep(200))
            await asyncio.sleep(1)
        log.append(str(stepping.loop.time()))
        return log

    assert run_stepping(program) == ["poller", "200.0"]


def test_a_release_waits_for_the_tasks_of_a_held_scope() -> None:
    async def program(stepping: Stepping) -> float:
        async with Scope("bot") as scope:
            jobs = Scope("jobs")
            await scope.hold(jobs)
            task = jobs.spawn(asyncio.sleep(5))
            await scope.release(jobs)
            assert task.done()
            assert not task.cancelled()
        return stepping.loop.time()

    assert run_stepping(program) == pytest.approx(5)
