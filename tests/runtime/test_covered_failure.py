"""A17: a task that has failed and is cancelled in its `finally` is reported with its error."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from handfast import KeyedTasks, Scope
from handfast.types import CloseReport, TaskEnd
from tests.runtime.scope.workshop import turns
from tests.support.stepping import Stepping, cancel_everywhere, new_loop, run_on

Work = Callable[[], Awaitable[None]]


def note(_: object) -> None:
    """Something that a handler does."""


async def wait() -> None:
    await asyncio.Event().wait()


class Resource:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await wait()


@contextlib.asynccontextmanager
async def resource() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await wait()


# --- had failed ------------------------------------------------------------------------------


async def in_finally() -> None:
    try:
        raise ValueError("work")
    finally:
        await wait()


async def in_a_try_in_finally() -> None:
    try:
        raise ValueError("work")
    finally:
        try:
            await wait()
        except KeyError:
            pass


async def in_finally_of_a_loop() -> None:
    for number in range(2):
        try:
            if number:
                raise ValueError("work")
        finally:
            if number:
                await wait()


async def in_finally_after_except() -> None:
    try:
        raise ValueError("work")
    except KeyError as error:
        note(error)
    else:
        note("no error")
    finally:
        await wait()


async def in_a_function_that_is_awaited() -> None:
    async with asyncio.timeout(3600):
        await in_finally()


async def at_the_end_of_async_with() -> None:
    async with Resource():
        raise ValueError("work")


async def at_the_end_of_a_context_manager() -> None:
    async with resource():
        raise ValueError("work")


async def in_a_try_for_another_error() -> None:
    try:
        async with asyncio.timeout(3600):
            await in_finally()
    except TimeoutError:
        note("too late")
    except KeyError as error:
        note(error)


OTHERS = (OSError, KeyError)


async def in_a_try_for_other_errors() -> None:
    try:
        try:
            await in_finally()
        except (asyncio.InvalidStateError, KeyError) as error:
            note(error)
        except OTHERS:
            raise
    except asyncio.TimeoutError:  # noqa: UP041 - a name in a module
        note("too late")


FAILED = [
    in_finally,
    in_a_try_in_finally,
    in_finally_of_a_loop,
    in_finally_after_except,
    in_a_function_that_is_awaited,
    at_the_end_of_async_with,
    at_the_end_of_a_context_manager,
    in_a_try_for_another_error,
    in_a_try_for_other_errors,
]


# --- had not failed, or may not have ---------------------------------------------------------


async def in_except() -> None:
    """As a client does that waits before it tries again."""
    while True:
        try:
            raise ValueError("work")
        except (OSError, ValueError) as error:
            note(error)
            await wait()


async def in_bare_except() -> None:
    try:
        raise ValueError("work")
    except:  # noqa: E722
        await wait()


async def in_except_star() -> None:
    try:
        raise ExceptionGroup("both", [ValueError("work")])
    except* ValueError:
        await wait()


async def in_finally_inside_except() -> None:
    try:
        raise ValueError("work")
    except ValueError:
        try:
            note("one more")
        finally:
            await wait()


async def in_a_resource_inside_except() -> None:
    try:
        raise ValueError("work")
    except ValueError:
        async with Resource():
            note("entered")


async def inside_a_try_that_handles_it() -> None:
    try:
        await in_finally()
    except ValueError:
        note("handled")


async def inside_a_try_that_handles_it_second() -> None:
    try:
        await in_finally()
    except TimeoutError:
        note("too late")
    except (KeyError, Exception) as error:
        note(error)


async def inside_a_try_with_a_class_that_is_computed() -> None:
    kind = ValueError
    try:
        await in_finally()
    except kind:
        note("handled")


async def inside_a_with_that_suppresses_it() -> None:
    with contextlib.suppress(ValueError):
        await in_finally()


async def after_it_was_handled() -> None:
    try:
        raise ValueError("work")
    except ValueError:
        note("handled")
    try:
        note("more")
    finally:
        await wait()


CANCELLED = [
    in_except,
    in_bare_except,
    in_except_star,
    in_finally_inside_except,
    in_a_resource_inside_except,
    inside_a_try_that_handles_it,
    inside_a_try_that_handles_it_second,
    inside_a_try_with_a_class_that_is_computed,
    inside_a_with_that_suppresses_it,
    after_it_was_handled,
]


def closed(kind: str, work: Work, start: Callable[[Scope, Any], object]) -> tuple[CloseReport, Any]:
    """Start `work`, close its scope when it waits; the report, and what the loop's handler got."""
    reported: list[Any] = []

    async def main() -> CloseReport:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
        scope = Scope("s")
        start(scope, work)
        await turns(6)
        report = await scope.close()
        await turns(4)
        return report

    with asyncio.Runner(loop_factory=lambda: new_loop(kind)) as runner:
        return runner.run(main()), reported


STARTS: dict[str, Callable[[Scope, Any], object]] = {
    "spawn": lambda scope, work: scope.spawn(work()),
    "supervise": lambda scope, work: scope.supervise(work),
    "key": lambda scope, work: KeyedTasks(scope).start("a", work),
}
starts = pytest.mark.parametrize("start", STARTS)


@starts
@pytest.mark.parametrize("work", FAILED, ids=lambda work: work.__name__)
def test_the_error_is_reported(any_kind: str, work: Work, start: str) -> None:
    """A17."""
    report, reported = closed(any_kind, work, STARTS[start])
    assert [repr(end.error) for end in report.failed] == ["ValueError('work')"]
    assert not report.cancelled
    assert not report.cleanup_errors
    assert reported == [report.failed[0].error]
    assert "in task" in report.failed[0].error.__notes__[-1]  # type: ignore[union-attr]


@starts
@pytest.mark.parametrize("work", CANCELLED, ids=lambda work: work.__name__)
def test_an_error_that_was_handled_is_no_failure(any_kind: str, work: Work, start: str) -> None:
    """A17: no false alarm for a task that waits in an `except`."""
    report, reported = closed(any_kind, work, STARTS[start])
    assert (len(report.cancelled), report.failed, reported) == (1, (), [])


def test_the_error_is_in_the_group_of_the_block(any_kind: str) -> None:
    """A17: a sibling fails, and cancels one that has failed already."""

    async def fail() -> None:
        await turns(3)
        raise KeyError("sibling")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("s") as scope:
                scope.spawn(in_finally())
                scope.spawn(fail())
        texts = sorted(repr(error) for error in caught.value.exceptions)
        assert texts == ["KeyError('sibling')", "ValueError('work')"]

    run_on(any_kind, main())


def test_a_cancel_by_the_program_does_not_hide_the_error() -> None:
    """A17: at every step. Before the failure it is a cancel, from then on a failure."""

    async def main(stepping: Stepping) -> tuple[bool, tuple[str, ...]]:
        ends: list[TaskEnd] = []

        async def work() -> None:
            await asyncio.sleep(0)
            try:
                raise ValueError("work")
            finally:
                await asyncio.sleep(1)

        async with Scope("s", on_failure=ends.append) as scope:
            task = stepping.victim(scope.spawn(work()))
            await asyncio.wait({task})
        return task.cancelled(), tuple(repr(end.error) for end in ends)

    outcomes = list(cancel_everywhere(main))
    assert outcomes[0] == (True, ())
    assert outcomes[-1] == (False, ("ValueError('work')",))
    assert set(outcomes) == {outcomes[0], outcomes[-1], (True, ("ValueError('work')",))}


def test_the_submitter_gets_the_error(any_kind: str) -> None:
    """A17."""

    async def main() -> None:
        scope = Scope("s")
        future = scope.submit(in_finally)
        await turns(4)
        await scope.close()
        with pytest.raises(ValueError, match="work"):
            await asyncio.wrap_future(future)

    run_on(any_kind, main())
