"""The phase is noted where the error is raised: in scopes, task groups, resources, streams (S3.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

import handfast
from tests.support.stepping import Stepping, run_on, run_stepping

WORDS = "the very same words"


async def fail(after: float = 0) -> None:
    await asyncio.sleep(after)
    raise ValueError(WORDS)


async def fail_in_clean_up() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        raise ValueError(WORDS)


async def fail_both_ways(kind: str) -> None:
    """A task group whose child fails, and whose other child fails in its clean-up."""
    if kind == "task group":
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_in_clean_up())
            group.create_task(fail(after=1))
    else:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_in_clean_up)
            tasks.start_soon(fail, 1)


async def slowly_cleaned_up() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(2)


async def failing_while_closed(kind: str) -> None:
    """A task group whose child fails; the other one's clean-up takes two seconds more."""
    if kind == "task group":
        async with asyncio.TaskGroup() as group:
            group.create_task(slowly_cleaned_up())
            group.create_task(fail(after=1))
    else:
        async with handfast.Scope("inner") as scope:
            scope.spawn(slowly_cleaned_up())
            scope.spawn(fail(after=1))


def test_what_a_task_raises_after_its_scope_has_cancelled_it_is_a_clean_up_error(kind: str) -> None:
    """S3.6: in the report."""

    async def main() -> handfast.types.CloseReport:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(fail_in_clean_up(), name="flush")
        await asyncio.sleep(0)
        return await scope.close()

    report = run_on(kind, main())
    assert report.failed == ()
    assert [repr(error) for error in report.cleanup_errors] == [f"ValueError({WORDS!r})"]


def test_the_group_of_a_scope_carries_clean_up_errors_in_a_group_of_their_own(kind: str) -> None:
    """S3.6: the same type and text in both phases."""

    async def main() -> BaseExceptionGroup[BaseException]:
        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(fail_in_clean_up())
                await asyncio.sleep(0)
                scope.spawn(fail())
        except BaseExceptionGroup as group:
            return group
        raise AssertionError

    group = run_on(kind, main())
    operational, cleanup = group.exceptions
    assert isinstance(operational, ValueError)
    assert isinstance(cleanup, handfast.errors.CleanupErrors)
    failure = handfast.split_errors(group)
    assert failure.operational == (operational,)
    assert failure.cleanup == cleanup.exceptions
    assert str(operational) == str(cleanup.exceptions[0]) == WORDS


def test_an_error_of_the_body_and_clean_up_errors_come_out_together(kind: str) -> None:
    """S3.6"""

    async def main() -> handfast.types.Failure:
        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(fail_in_clean_up())
                await asyncio.sleep(0)
                raise LookupError("the body")
        except BaseExceptionGroup as group:
            return handfast.split_errors(group)

    failure = run_on(kind, main())
    assert [type(error) for error in failure.operational] == [LookupError]
    assert [type(error) for error in failure.cleanup] == [ValueError]


@pytest.mark.parametrize("inner", ["task group", "anyio"])
def test_a_task_group_inside_a_scope_surfaces_with_all_that_is_in_it(inner: str) -> None:
    """S3.6: what failed by itself is operational, and nothing is lost. (On 3.11 and 3.12 the task
    group leaves its task as if cancelled: what its children raised in their clean-up is then known
    to be that.)"""

    async def program(stepping: Stepping) -> handfast.types.Failure:
        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(fail_both_ways(inner))
        except BaseExceptionGroup as group:
            return handfast.split_errors(group)
        raise AssertionError

    failure = run_stepping(program)
    assert failure.operational
    assert [str(error) for error in failure.operational + failure.cleanup] == [WORDS, WORDS]


def test_an_error_after_a_failed_task_group_was_dealt_with_is_operational() -> None:
    """S3.6: on 3.11 and 3.12 the task still counts a cancel that nobody has sent (#116720)."""

    async def work() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail(after=1))
        except* ValueError:
            pass
        raise LookupError("the work")

    async def program(stepping: Stepping) -> handfast.types.CloseReport:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(work())
        await asyncio.sleep(2)
        return await scope.close()

    report = run_stepping(program)
    assert [repr(ending.error) for ending in report.failed] == ["LookupError('the work')"]
    assert report.cleanup_errors == ()


def test_an_error_after_the_cancel_was_swallowed_is_a_clean_up_error() -> None:
    """S3.6: the scope has cancelled the task, and it is ending."""

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
        await fail()

    async def program(stepping: Stepping) -> handfast.types.CloseReport:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(work())
        await asyncio.sleep(1)
        return await scope.close()

    report = run_stepping(program)
    assert report.failed == ()
    assert len(report.cleanup_errors) == 1


def test_an_error_that_cannot_be_written_to_cancels_the_siblings_like_any_other(kind: str) -> None:
    """S3.6"""

    @dataclass(frozen=True)
    class Frozen(Exception):
        code: int

    async def work() -> None:
        raise Frozen(7)

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                scope.spawn(asyncio.sleep(3600))
                scope.spawn(work())
        [error] = caught.value.exceptions
        assert error == Frozen(7)
        assert "created at" in error.__notes__[0]

    run_on(kind, main())


@pytest.mark.parametrize("inner", ["task group", "scope"])
@pytest.mark.parametrize("closed_at", [0.5, 1.5])
def test_an_error_from_before_the_close_stays_operational_in_a_group_that_comes_after_it(
    inner: str, closed_at: float
) -> None:
    """S3.6: the close comes while the group that failed still waits for its other children."""

    async def program(stepping: Stepping) -> tuple[handfast.types.CloseReport, list[BaseException]]:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(failing_while_closed(inner))
        await asyncio.sleep(closed_at)
        report = await scope.close()
        errors = [ending.error for ending in report.failed if ending.error is not None]
        return report, errors

    report, errors = run_stepping(program)
    assert report.cleanup_errors == ()
    operational = [e for error in errors for e in handfast.split_errors(error).operational]
    assert [str(error) for error in operational] == ([] if closed_at < 1 else [WORDS])


@pytest.mark.parametrize("what", ["resource", "stream", "shielded", "task"])
def test_one_and_the_same_error_is_distinguished_by_its_phase_alone(what: str) -> None:
    """S3.6"""

    async def raise_in(phase: str, wanted: str) -> None:
        await asyncio.sleep(0)
        if phase == wanted:
            raise ValueError(WORDS)

    @asynccontextmanager
    async def resource(wanted: str) -> AsyncIterator[None]:
        await raise_in("operation", wanted)
        yield
        await raise_in("clean-up", wanted)

    async def generator(wanted: str) -> AsyncGenerator[int, None]:
        try:
            await raise_in("operation", wanted)
            yield 1
        finally:
            if wanted == "clean-up":
                await raise_in("clean-up", wanted)

    async def task(wanted: str) -> None:
        try:
            await raise_in("operation", wanted)
            await asyncio.sleep(3600)
        finally:
            if wanted == "clean-up":
                raise ValueError(WORDS)

    async def use(wanted: str) -> None:
        if what == "stream":
            async with handfast.stream(generator(wanted)) as items:
                await items.__anext__()
        elif what == "shielded":
            await raise_in("operation", wanted)
            await handfast.shielded(raise_in("clean-up", wanted))
        elif what == "resource":
            async with handfast.Scope("s") as scope:
                await scope.hold(resource(wanted))
        else:
            scope = handfast.Scope("s", on_failure="cancel")
            scope.spawn(task(wanted))
            await asyncio.sleep(1)
            (await scope.close()).raise_if_unclean()

    async def program(stepping: Stepping) -> None:
        for phase in ("operation", "clean-up"):
            with pytest.raises((ValueError, ExceptionGroup)) as caught:
                await use(phase)
            failure = handfast.split_errors(caught.value)
            found = failure.operational if phase == "operation" else failure.cleanup
            assert [repr(error) for error in found] == [f"ValueError({WORDS!r})"]
            assert len(failure.operational) + len(failure.cleanup) == 1

    run_stepping(program)


def test_a_stream_with_a_failing_child_keeps_the_phases_apart() -> None:
    """S3.6: one child fails by itself while the stream is being left, another one in its clean-up."""

    async def generator() -> AsyncGenerator[int, None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_in_clean_up())
            group.create_task(fail())
            yield 1

    async def program(stepping: Stepping) -> handfast.types.Failure:
        try:
            async with handfast.stream(generator()) as items:
                await items.__anext__()
                await asyncio.sleep(0)
        except ExceptionGroup as group:
            return handfast.split_errors(group)
        raise AssertionError

    failure = run_stepping(program)
    assert len(failure.operational) + len(failure.cleanup) == 2
    assert failure.operational


def test_nothing_turns_an_error_into_a_success(kind: str) -> None:
    """S3.6: whatever a group is made of, closing reports it as unclean and raises it."""

    async def main() -> list[Any]:
        outcomes = []
        for make in (fail, fail_in_clean_up):
            scope = handfast.Scope("s", on_failure="cancel")
            scope.spawn(make())
            await asyncio.sleep(0)
            report = await scope.close()
            with pytest.raises(ExceptionGroup):
                report.raise_if_unclean()
            outcomes.append(report.clean)
        return outcomes

    assert run_on(kind, main()) == [False, False]
