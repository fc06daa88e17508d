"""A task that the program has cancelled is not cancelled again by the scope (A14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

import handfast
from tests.runtime.scope.workshop import turns
from tests.support.stepping import Stepping, run_on, run_stepping

Work = Callable[[list[str]], Awaitable[None]]


async def clean_up(log: list[str]) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        log.append("begins")
        for _ in range(5):
            await asyncio.sleep(0)
        log.append("ends")


async def clean_up_in_a_handler(log: list[str]) -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError as error:
        log.append("begins")
        raised = error
    for _ in range(5):
        await asyncio.sleep(0)
    log.append("ends")
    raise raised


async def clean_up_in_an_awaited_task(log: list[str]) -> None:
    await asyncio.create_task(clean_up(log))


async def clean_up_in_a_gathered_task(log: list[str]) -> None:
    await asyncio.gather(asyncio.sleep(0), asyncio.create_task(clean_up(log)))


async def clean_up_in_a_group(log: list[str]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(clean_up(log))


async def clean_up_in_a_scope(log: list[str]) -> None:
    async with handfast.Scope() as scope:
        scope.spawn(clean_up(log))


WORK = [
    clean_up,
    clean_up_in_a_handler,
    clean_up_in_an_awaited_task,
    clean_up_in_a_gathered_task,
    clean_up_in_a_group,
    clean_up_in_a_scope,
]


@pytest.mark.parametrize("work", WORK)
def test_close_does_not_cut_the_clean_up_after_a_cancel_of_the_program(
    any_kind: str, work: Work
) -> None:
    """A14"""

    async def main() -> None:
        log: list[str] = []
        scope = handfast.Scope("s")
        task = scope.spawn(_run(work, log))
        await turns(12)  # it sleeps
        task.cancel()
        while not log:
            await asyncio.sleep(0)
        report = await scope.close()
        assert log == ["begins", "ends"]
        assert (len(report.cancelled), report.clean) == (1, True)

    run_on(any_kind, main())


async def _run(work: Work, log: list[str]) -> None:
    await work(log)


@pytest.mark.parametrize("steps", range(8))
def test_at_any_step_after_the_cancel_the_clean_up_is_whole(steps: int) -> None:
    """A14: also in the step of the cancel itself, before the task has received it."""

    async def program(_: Stepping) -> list[str]:
        log: list[str] = []
        scope = handfast.Scope("s")
        task = scope.spawn(clean_up(log))
        await asyncio.sleep(1)
        task.cancel()
        await turns(steps)
        await scope.close()
        return log

    assert run_stepping(program) == ["begins", "ends"]


def test_a_task_that_survives_its_cancel_is_cancelled_afterwards() -> None:
    """A14: a time-out inside the task is over soon; the close must not wait for its own."""

    async def work(log: list[str]) -> None:
        try:
            async with asyncio.timeout(1):
                await clean_up_slowly(log)
        except TimeoutError:
            log.append("timed out")
        await asyncio.sleep(3600)

    async def clean_up_slowly(log: list[str]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(1)
            log.append("cleaned up")

    async def program(stepping: Stepping) -> tuple[list[str], bool, str]:
        log: list[str] = []
        scope = handfast.Scope("s")
        scope.spawn(work(log), name="work")
        await asyncio.sleep(1.5)
        report = await scope.close()
        return log, stepping.loop.time() < 5, str(report)

    assert run_stepping(program) == (
        ["cleaned up", "timed out"],
        True,
        "scope 's' closed: 1 cancelled",
    )


def test_a_cancel_that_was_survived_long_ago_does_not_count() -> None:
    """A14: `cancelling()` stays at 1 after a swallowed cancel."""

    async def program(stepping: Stepping) -> tuple[float, str]:
        async def swallow() -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass
            await asyncio.sleep(3600)

        scope = handfast.Scope("s")
        task = scope.spawn(swallow())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        report = await scope.close()
        return stepping.loop.time(), str(report)

    assert run_stepping(program) == (2, "scope 's' closed: 1 cancelled")
