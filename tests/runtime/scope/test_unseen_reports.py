"""What no one sees in a report is reported to the loop (A18); asking again looks again (A13)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

import handfast
from tests.runtime.scope.workshop import turns
from tests.support.stepping import new_loop, run_on


async def fail_in_clean_up() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await turns(3)
        raise OSError("half written")


async def straggle(release: asyncio.Event, error: Exception | None = None) -> None:
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            pass
    if error is not None:
        raise error


def run_and_collect(kind: str, main: Coroutine[Any, Any, None]) -> list[BaseException]:
    loop = new_loop(kind)
    seen: list[BaseException] = []
    loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()
    return seen


def test_a_close_that_is_cancelled_tells_the_loop_what_it_would_have_returned(
    any_kind: str,
) -> None:
    """A18"""

    async def main() -> None:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(fail_in_clean_up())
        await turns(2)
        closer = asyncio.create_task(scope.close())
        await turns(2)
        closer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closer
        assert len(scope) == 0

    assert [repr(error) for error in run_and_collect(any_kind, main())] == [
        "OSError('half written')"
    ]


def test_another_closer_gets_the_report_of_one_that_is_cancelled(any_kind: str) -> None:
    """A18: what one closer sees is not reported to the loop."""

    async def main() -> int:
        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(fail_in_clean_up())
        await turns(2)
        cancelled = asyncio.create_task(scope.close())
        other = asyncio.create_task(scope.close())
        await turns(2)
        cancelled.cancel()
        report = await other
        await asyncio.wait({cancelled})
        return len(report.cleanup_errors)

    assert run_on(any_kind, main()) == 1


@pytest.mark.parametrize("entered", [True, False])
def test_the_failure_of_a_straggler_after_the_close_is_reported_to_the_loop(
    any_kind: str, entered: bool
) -> None:
    """A18"""

    async def main() -> None:
        release = asyncio.Event()
        scope = handfast.Scope("s", on_failure="cancel", grace=0, timeout=0.01)
        if entered:
            with pytest.raises(BaseExceptionGroup):
                async with scope:
                    scope.spawn(straggle(release, OSError("late")))
                    await turns(2)
        else:
            scope.spawn(straggle(release, OSError("late")))
            await turns(2)
            assert len((await scope.close()).stragglers) == 1
        release.set()
        await turns(5)

    assert [repr(error) for error in run_and_collect(any_kind, main())] == ["OSError('late')"]


def test_a_second_close_looks_again(any_kind: str) -> None:
    """A13"""

    async def main() -> list[str]:
        release = asyncio.Event()
        scope = handfast.Scope("s", timeout=0.01)
        scope.spawn(straggle(release))
        await turns(2)
        reports = [await scope.close()]
        release.set()
        await turns(5)
        reports.append(await scope.close())
        # The scope's own timeout may be over before a busy machine answers the thread.
        reports.append(await asyncio.to_thread(scope.close_from_thread, timeout=60))
        return [str(report).partition("\n")[0] for report in reports]

    assert run_on(any_kind, main()) == [
        "scope 's' closed: 1 still running",
        "scope 's' closed: 1 finished",
        "scope 's' closed: 1 finished",
    ]


def test_a_second_close_sees_the_failure_of_a_straggler() -> None:
    """A13, A18"""

    async def main() -> list[int]:
        release = asyncio.Event()
        scope = handfast.Scope("s", on_failure="cancel", timeout=0.01)
        scope.spawn(straggle(release, OSError("late")))
        await turns(2)
        counts = [len((await scope.close()).failed)]
        second = asyncio.create_task(scope.close(timeout=60))
        await turns(2)
        release.set()
        report = await second
        counts.append(len(report.failed) + len(report.cleanup_errors))
        return counts

    assert run_on("stock", main()) == [0, 1]
