"""One exception object in many tasks: a phase for each task, once in a group, bounded output.

A3, A4, A10, A23.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any

import pytest

import handfast
from handfast.explore import explore
from tests.support.failures import errors_into
from tests.support.stepping import run_on


class Stop(BaseException):
    """Neither an Exception nor one of asyncio's own."""


async def fail_with(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def fail_in_cleanup(error: BaseException) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        raise error


async def raised_by_a_scope(error: BaseException, *, in_cleanup: BaseException) -> BaseException:
    """What a scope raises in which a task fails with `error`, another one in its clean-up."""
    try:
        async with handfast.Scope("s") as scope:
            scope.spawn(fail_in_cleanup(in_cleanup))
            await asyncio.sleep(0)
            scope.spawn(fail_with(error))
    except BaseException as raised:
        return raised
    raise AssertionError


def test_an_error_that_ends_one_task_and_the_clean_up_of_another_is_operational(
    any_kind: str,
) -> None:
    """A3, A23: in the group once, by identity."""
    error = ConnectionError("gone")
    group = run_on(any_kind, raised_by_a_scope(error, in_cleanup=error))
    assert isinstance(group, ExceptionGroup)
    assert group.exceptions == (error,)
    assert handfast.split_errors(group) == handfast.types.Failure((error,), ())
    assert handfast.split_errors(error) == handfast.types.Failure((error,), ())


def test_the_report_says_of_each_task_in_which_phase_it_failed(any_kind: str) -> None:
    """A3: with one exception object."""
    error = ConnectionError("gone")

    async def main() -> handfast.types.CloseReport:
        loop = asyncio.get_running_loop()
        reported: list[dict[str, Any]] = []
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        scope = handfast.Scope("s", on_failure="report")
        scope.spawn(fail_in_cleanup(error), name="flush")
        started = asyncio.get_running_loop().create_future()

        async def work() -> None:
            await started
            raise error

        scope.spawn(work(), name="work")
        loop.call_later(0.01, started.set_result, None)  # in the grace
        report = await scope.close(grace=0.05)
        loop.set_exception_handler(before)
        return report

    report = run_on(any_kind, main())
    assert [end.name for end in report.failed] == ["work"]
    assert report.cleanup_errors == (error,)
    assert report.problems() == [error]


def test_an_error_of_the_body_that_a_clean_up_raises_too_is_operational(any_kind: str) -> None:
    """A3, A23"""
    error = ConnectionError("gone")

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scope.spawn(fail_in_cleanup(error))
            await asyncio.sleep(0)
            raise error

    with pytest.raises(ExceptionGroup) as caught:
        run_on(any_kind, main())
    assert caught.value.exceptions == (error,)
    assert handfast.split_errors(caught.value).operational == (error,)


def test_a_shielded_clean_up_of_one_task_does_not_make_the_failure_of_another_one(
    any_kind: str,
) -> None:
    """A3: the error travels through `shielded` in one task, and plainly in the other."""
    error = ConnectionError("gone")

    async def clean() -> None:
        await handfast.shielded(fail_with(error))

    async def outcome(*works: Any) -> tuple[int, int]:
        try:
            async with handfast.Scope("s") as scope:
                for work in works:
                    scope.spawn(work)
        except ExceptionGroup as group:
            failure = handfast.split_errors(group)
            return len(failure.operational), len(failure.cleanup)
        raise AssertionError

    assert run_on(any_kind, outcome(clean())) == (0, 1)
    assert run_on(any_kind, outcome(clean(), fail_with(error))) == (1, 0)
    assert run_on(any_kind, outcome(fail_with(error), clean())) == (1, 0)


def test_no_schedule_turns_the_shared_error_of_a_failed_task_into_a_clean_up_error() -> None:
    """A3: explored, with a cancel at every step."""

    async def program() -> None:
        error = ConnectionError("gone")
        done: list[str] = []

        async def work() -> None:
            await asyncio.sleep(1)
            done.append("failed")
            raise error

        async def flush() -> None:
            try:
                await asyncio.sleep(1)
            finally:
                raise error

        try:
            async with handfast.Scope("s") as scope:
                scope.spawn(work())
                scope.spawn(flush())
        except ExceptionGroup as group:
            found, members = handfast.split_errors(group), group.exceptions
            assert len(members) == 1
            assert len(found.operational) + len(found.cleanup) == 1
            assert not done or found.operational

    found = explore(program, cancel=True, schedules=300)
    assert found.counterexample is None, found.summary


@pytest.mark.parametrize("kind_of_error", [Stop, KeyboardInterrupt, SystemExit])
def test_no_operational_error_is_lost_when_a_clean_up_raises_a_base_exception(
    any_kind: str, kind_of_error: type[BaseException]
) -> None:
    """A4"""
    fatal = kind_of_error()
    work = ValueError("work")
    seen: list[BaseException] = []

    async def main() -> None:
        seen.append(await raised_by_a_scope(work, in_cleanup=fatal))

    try:
        run_on(any_kind, main())
    except (KeyboardInterrupt, SystemExit):  # through the loop, as from any task
        assert not isinstance(fatal, Stop)
    if seen:
        [raised] = seen
        failure = handfast.split_errors(raised)
        assert failure.operational == (work,)
        assert fatal in failure.cleanup
        if isinstance(fatal, Stop):
            assert isinstance(raised, BaseExceptionGroup)
        else:
            assert raised is fatal


@pytest.mark.parametrize("kind_of_error", [Stop, KeyboardInterrupt, SystemExit])
def test_no_error_of_a_task_is_lost_when_the_body_raises_a_base_exception(
    any_kind: str, kind_of_error: type[BaseException]
) -> None:
    """A4: an interrupt leaves as it is, and has the errors as its context."""
    body = kind_of_error()
    flush = OSError("flush")

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            scope.spawn(fail_in_cleanup(flush))
            await asyncio.sleep(0)
            raise body

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - compared below
        run_on(any_kind, main())
    assert handfast.split_errors(caught.value) == handfast.types.Failure((body,), (flush,))
    if not isinstance(body, Stop):
        assert caught.value is body


def test_a_base_exception_of_a_task_is_raised_also_if_failures_are_only_reported(
    any_kind: str,
) -> None:
    """A4: alone as it is, as `pytest.skip` in the body."""

    async def main() -> None:
        async with handfast.Scope("s", on_failure="report") as scope:
            scope.spawn(fail_with(Stop("child")))

    with pytest.raises(Stop, match="child"):
        run_on(any_kind, main())


def test_a_closed_generator_with_a_scope_inside_raises_the_errors_of_the_scope(
    any_kind: str,
) -> None:
    """A4: a GeneratorExit is a request, and no error."""

    async def generator(cleanup: BaseException | None) -> Any:
        async with handfast.Scope("s") as scope:
            if cleanup is not None:
                scope.spawn(fail_in_cleanup(cleanup))
                await asyncio.sleep(0)
            yield 1

    async def main(cleanup: BaseException | None) -> None:
        items = generator(cleanup)
        await items.__anext__()
        await items.aclose()

    run_on(any_kind, main(None))
    with pytest.raises(handfast.errors.CleanupErrors, match="while closing scope 's'"):
        run_on(any_kind, main(OSError("flush")))


# --- bounded output ------------------------------------------------------------------------------


def logged_lines(caplog: pytest.LogCaptureFixture) -> int:
    formatter = logging.Formatter()
    return sum(len(formatter.format(record).splitlines()) for record in caplog.records)


def test_many_tasks_that_fail_with_one_exception_write_a_few_lines_each(
    any_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A10: 0.1.0 wrote 961,600 lines for 400 tasks."""
    error = ConnectionError("gone")
    kept: list[asyncio.Task[None]] = []

    async def main() -> str:
        asyncio.get_running_loop().set_exception_handler(None)
        gone = asyncio.Event()

        async def read() -> None:
            await gone.wait()
            raise error

        scope = handfast.Scope("s", on_failure="report")
        kept.extend(scope.spawn(read()) for _ in range(400))
        await asyncio.sleep(0)
        gone.set()
        await asyncio.wait(kept[:1])
        kept[0].exception()  # or asyncio reports it when a later test collects it
        await asyncio.sleep(0.01)
        return str(await scope.close())

    run_on(any_kind, main())
    assert len(caplog.records) >= 399  # the first one is awaited
    assert logged_lines(caplog) < 3 * 400
    assert len("".join(traceback.format_exception(error)).splitlines()) < 400
    assert error.__notes__[-1] == "... and in 392 more tasks"
    assert len(error.__notes__) == 9


def test_an_exception_object_is_reported_in_full_to_each_loop(
    any_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A10: one that is raised again in a later run of the program."""
    error = ConnectionError("gone")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(None)
        async with handfast.Scope("s", on_failure="report") as scope:
            for _ in range(2):
                scope.spawn(fail_with(error))
        await asyncio.sleep(0)

    for _ in range(2):
        caplog.clear()
        run_on(any_kind, main())
        assert [bool(record.exc_info) for record in caplog.records] == [True, False]
        assert "ConnectionError('gone'), which was reported before" in caplog.text


def test_the_text_of_an_error_in_a_report_is_bounded() -> None:
    """A10"""
    end = handfast.types.TaskEnd("work", None, ValueError("x" * 1_000_000))
    assert len(str(handfast.types.CloseReport("s", failed=(end,)))) < 2_000


# --- exceptions of odd classes -------------------------------------------------------------------


class NoNotes(Exception):
    """Refuses notes, in each of the ways in which a class or a program can."""

    def add_note(self, note: str, /) -> None:
        raise TypeError("no notes")


class NotesAreNone(Exception):
    def __init__(self) -> None:
        self.__notes__: Any = None


class OwnDict(Exception):
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AttributeError("no attributes")


class Slotted(Exception):
    __slots__ = ("code",)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class Silent(Exception):
    """Has no text, and is false."""

    def __str__(self) -> str:
        raise RuntimeError("no str()")

    def __repr__(self) -> str:
        raise RuntimeError("no repr()")

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("odd", [NoNotes, NotesAreNone, OwnDict, Slotted, Silent])
@pytest.mark.parametrize("on_failure", ["cancel", "report", "function"])
def test_an_exception_of_an_odd_class_is_handled_like_any_other(
    any_kind: str, odd: type[Exception], on_failure: str
) -> None:
    """A24: the siblings are cancelled, the report can be printed, the error is in the group."""
    error = odd()
    seen: list[Any] = []

    async def main() -> handfast.types.CloseReport:
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
        handler: Any = errors_into(seen) if on_failure == "function" else on_failure
        scope = handfast.Scope("s", on_failure=handler)
        sibling = scope.spawn(asyncio.sleep(3600))
        release = asyncio.Event()

        async def work() -> None:
            await release.wait()
            raise error

        scope.spawn(work())
        await asyncio.sleep(0)
        release.set()
        await asyncio.sleep(0)
        report = await scope.close(grace=0.02)
        assert sibling.cancelled()
        loop.set_exception_handler(before)
        return report

    report = run_on(any_kind, main())
    assert [one is error for one in seen] == [True] * (on_failure != "cancel")
    if report.failed:  # it was still alive when the close began
        assert "failed: " in str(report)
        assert len(handfast.split_errors(error).operational) == 1
        with pytest.raises(ExceptionGroup) as caught:
            report.raise_if_unclean()
        assert [one is error for one in caught.value.exceptions] == [True]


def test_a_race_in_which_all_fail_raises_an_error_that_is_false(any_kind: str) -> None:
    """A24"""
    error = Silent()

    async def main() -> list[bool]:
        try:
            await handfast.race(fail_with(error))
        except ExceptionGroup as group:
            return [one is error for one in group.exceptions]
        raise AssertionError

    assert run_on(any_kind, main()) == [True]
