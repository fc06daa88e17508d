"""The report of a close says for each cancelled task who has cancelled it, and on which line."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

import handfast
from handfast import KeyedTasks, Scope
from handfast._runtime.cancel_reason import carried_reason
from handfast.explore import explore
from handfast.types import CancelReason, CloseReport, Origin, TaskEnd
from tests.runtime.scope.workshop import turns
from tests.support.stepping import run_on

Close = Callable[[Scope, "asyncio.Task[None]"], Awaitable[CloseReport]]


async def idle() -> None:
    await asyncio.Event().wait()


async def slow_to_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        for _ in range(9):
            await asyncio.sleep(0)


def reasons(report: CloseReport) -> dict[str, tuple[str, str | None]]:
    """The name of each cancelled task, with the text of its reason and the source of its line."""
    return {end.name: _shown(end.reason) for end in report.cancelled}


def _shown(reason: CancelReason | None) -> tuple[str, str | None]:
    assert reason is not None
    return reason.text, None if reason.origin is None else reason.origin.source


async def close(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    return await scope.close()


async def close_in_a_task(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    return await asyncio.create_task(scope.close())


async def close_after_grace(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    return await scope.close(grace=0.001)


async def close_in_a_thread(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    return await asyncio.to_thread(lambda: scope.close_from_thread())


async def cancel(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    scope.cancel()
    return await scope.close()


async def cancel_while_draining(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    closing = asyncio.create_task(scope.close(grace=60))
    await asyncio.sleep(0)
    scope.cancel()
    return await closing


async def program(scope: Scope, task: asyncio.Task[None]) -> CloseReport:
    task.cancel()
    return await scope.close()


async def program_while_draining(scope: Scope, task: asyncio.Task[None]) -> CloseReport:
    closing = asyncio.create_task(scope.close(grace=60))
    await asyncio.sleep(0)
    task.cancel("enough")
    return await closing


async def failure(scope: Scope, _: asyncio.Task[None]) -> CloseReport:
    async def fail() -> None:
        raise ValueError("boom")

    failing = scope.spawn(fail(), name="failing")
    await asyncio.wait({failing})
    return await scope.close()


CLOSES: list[tuple[Close, tuple[str, str | None]]] = [
    (close, ("close()", "return await scope.close()")),
    (close_in_a_task, ("close()", None)),
    (close_after_grace, ("close()", "return await scope.close(grace=0.001)")),
    (
        close_in_a_thread,
        ("close()", "return await asyncio.to_thread(lambda: scope.close_from_thread())"),
    ),
    (cancel, ("cancel()", "scope.cancel()")),
    (cancel_while_draining, ("cancel()", "scope.cancel()")),
    (program, ("task.cancel()", "task.cancel()")),
    (program_while_draining, ("the program (enough)", None)),
    (failure, ("the failure of task 'failing' (ValueError)", 'raise ValueError("boom")')),
]


@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("ended_by", CLOSES, ids=lambda case: case[0].__name__)
def test_a_report_says_who_has_cancelled(
    ended_by: tuple[Close, tuple[str, str | None]], started: bool, any_kind: str
) -> None:
    act, expected = ended_by
    if act is close_in_a_task and any_kind == "wrapping":
        expected = ("close()", "return await coro")  # the line of the task factory

    async def main() -> CloseReport:
        scope = Scope("s", on_failure="cancel")
        task = scope.spawn(idle(), name="idle")
        if started:
            await asyncio.sleep(0)
        return await act(scope, task)

    report = run_on(any_kind, main())
    if act is program and any_kind == "wrapping":
        expected = ("the program", None)  # its task is not one of ours
    assert reasons(report) == {"idle": expected}
    shown = expected[0] not in ("close()", "the program")
    assert (f"  cancelled by {report.cancelled[0].reason}: idle" in str(report)) is shown


async def _timeout(job: Callable[[], Awaitable[None]]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await job()


async def _close_outer(job: Callable[[], Any]) -> None:
    scope = Scope("outer")
    scope.spawn(job(), name="job")
    await asyncio.sleep(0.001)
    await scope.close()


async def _cancel_with_text(job: Callable[[], Any]) -> None:
    task = asyncio.create_task(job(), name="job")
    await asyncio.sleep(0.001)
    task.cancel("stop")
    await asyncio.wait({task})


async def _cancel_silently(job: Callable[[], Any]) -> None:
    task = asyncio.create_task(job(), name="job")
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait({task})


async def _race(job: Callable[[], Any]) -> None:
    async def win() -> None:
        await asyncio.sleep(0.001)

    await handfast.race(job(), win())


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (_timeout, ("asyncio.timeout()", "await job()")),
        (_close_outer, ("the cancel of task 'job' by close()", "await scope.close()")),
        (_cancel_with_text, ("the cancel of task 'job' by the program (stop)", None)),
        (_cancel_silently, ("the cancel of task 'job'", None)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_scope_in_a_cancelled_task_says_why_that_was_cancelled(
    end: Callable[[Any], Awaitable[None]], expected: tuple[str, str | None], any_kind: str
) -> None:
    async def main() -> dict[str, tuple[str, str | None]]:
        inner: list[Scope] = []

        async def job() -> None:
            async with Scope("inner") as scope:
                inner.append(scope)
                scope.spawn(idle(), name="idle")

        await end(job)
        return reasons(await inner[0].close())

    assert run_on(any_kind, main()) == {"idle": expected}


def test_code_in_a_cancelled_task_reads_the_reason(any_kind: str) -> None:
    """It is the message of the CancelledError, of a service and of a loser of a race too."""

    async def main() -> list[str]:
        seen: list[str] = []

        async def read() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                seen.append(error.args[0].text)
                raise

        await _race(read)
        async with Scope() as scope:
            scope.supervise(read)
            await turns(5)
        async with Scope() as outer:
            held = Scope("held")
            await outer.hold(held)
            held.spawn(read())
            await asyncio.sleep(0)
            outer.cancel()
        return seen

    assert run_on(any_kind, main()) == [
        "race()",
        "the end of the block of its scope",
        "the end of scope '' by cancel()",
    ]


def test_the_block_of_a_scope_that_fails_is_a_reason() -> None:
    async def main() -> dict[str, tuple[str, str | None]]:
        scope = Scope()
        with pytest.raises(ExceptionGroup):
            async with scope:
                scope.spawn(idle(), name="idle")
                raise ValueError("boom")
        return reasons(await scope.close())

    who = "the failure of the block of its scope (ValueError)"
    assert asyncio.run(main()) == {"idle": (who, 'raise ValueError("boom")')}


def test_a_scope_that_is_dropped_is_a_reason() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        message = loop.create_future()

        async def read() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                message.set_result(str(error))
                raise

        scope = Scope()
        scope.spawn(read())
        await asyncio.sleep(0)
        with pytest.warns(ResourceWarning, match="dropped without close"):
            del scope
        return str(await message)

    assert asyncio.run(main()) == "its scope, which was dropped without close"


async def cancel_key(tasks: KeyedTasks, key: str) -> None:
    await tasks.cancel(key)


def test_keyed_tasks_say_which_call_has_ended_the_one_before() -> None:
    async def main() -> list[dict[str, tuple[str, str | None]]]:
        found = []
        async with Scope() as scope:
            for act in ("replace", "cancel", "close"):
                tasks = KeyedTasks(scope)
                tasks.start("key", slow_to_end)
                await asyncio.sleep(0)
                ending: set[asyncio.Task[Any]] = set()
                if act == "replace":
                    ending.add(asyncio.create_task(tasks.replace("key", idle)))
                elif act == "cancel":
                    ending.add(asyncio.create_task(cancel_key(tasks, "key")))
                await asyncio.sleep(0)
                found.append(reasons(await tasks.close()))
                if ending:
                    await asyncio.wait(ending)
                    await asyncio.gather(*ending, return_exceptions=True)
        return found

    assert asyncio.run(main()) == [
        {
            "slow_to_end": (
                "replace()",
                'ending.add(asyncio.create_task(tasks.replace("key", idle)))',
            )
        },
        {"slow_to_end": ("cancel()", "await tasks.cancel(key)")},
        {"slow_to_end": ("close()", "found.append(reasons(await tasks.close()))")},
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_reason(number: signal.Signals) -> None:
    scopes: list[Scope] = []

    async def main() -> CloseReport:
        try:
            async with Scope() as scope:
                scopes.append(scope)
                scope.spawn(idle(), name="idle")
                os.kill(os.getpid(), number)
        except asyncio.CancelledError:
            return await scopes[0].close()
        raise AssertionError

    assert reasons(handfast.run(main)) == {
        "idle": (f"the cancel of task 'main' by {number.name}", None)
    }


def test_a_background_loop_says_which_line_has_closed_it() -> None:
    background = handfast.BackgroundLoop("back")
    background.submit(_spawn_in, background.scope).result()
    report = background.close()
    assert reasons(report) == {"idle": ("close()", "report = background.close()")}
    assert str(report) == "scope 'back' closed: 1 cancelled"


async def _spawn_in(scope: Scope) -> None:
    scope.spawn(idle(), name="idle")


def test_a_cancel_that_a_task_survives_is_not_its_reason() -> None:
    """An anyio scope, or any other library, may also put a text of its own in place of ours."""

    async def replace_text() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise asyncio.CancelledError("a library") from None

    async def main() -> CloseReport:
        scope = Scope()
        scope.spawn(replace_text(), name="replaced")
        survivor = scope.spawn(_survive(), name="survivor")
        await asyncio.sleep(0)
        survivor.cancel("survived")
        await asyncio.sleep(0)
        return await scope.close()

    assert {text for text, _ in reasons(asyncio.run(main())).values()} == {"close()"}


async def _survive() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


def test_the_first_to_cancel_is_the_reason_in_every_schedule() -> None:
    """A close and a cancel of the same task race; a report never names one that came second."""

    async def main() -> None:
        scope = Scope()
        first: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                first.append("the program" if carried_reason(error) is None else str(error.args[0]))
                await asyncio.sleep(0)
                raise

        async def cancel_it() -> None:
            await asyncio.sleep(0)
            task.cancel()

        task = scope.spawn(work(), name="work")
        canceller = asyncio.create_task(cancel_it())
        await asyncio.sleep(0)
        report = await scope.close()
        await canceller
        if first:  # it had its first step
            assert [str(end.reason) for end in report.cancelled] == first

    found = explore(main, schedules=60)
    assert found.counterexample is None, found.summary


def test_a_report_groups_its_tasks_by_reason_and_stays_readable() -> None:
    here = CancelReason("cancel()", Origin.here())
    ends = [TaskEnd(f"t{n}", None, None, here) for n in range(400)]
    text = str(CloseReport("s", cancelled=tuple(ends)))
    assert text.splitlines() == [
        "scope 's' closed: 400 cancelled",
        f"  cancelled by {here}: {', '.join(f't{n}' for n in range(10))}, ... and 390 more",
    ]
    assert str(ends[0]) == f"t0, cancelled by {here}"


def test_a_call_by_the_loop_has_no_line_and_one_in_a_coroutine_has() -> None:
    """Frames above the loop, as that of `asyncio.run`, are not the line of the call."""

    async def main() -> list[tuple[str, str | None]]:
        found = []
        for call in ("loop", "wait_for"):
            scope = Scope()
            scope.spawn(idle(), name="idle")
            if call == "loop":
                asyncio.get_running_loop().call_soon(scope.cancel)
                await asyncio.sleep(0)
            report = await asyncio.wait_for(scope.close(), None)
            found.append(reasons(report)["idle"])
        return found

    line = "report = await asyncio.wait_for(scope.close(), None)"
    assert handfast.run(main) == [("cancel()", None), ("close()", line)]
    assert inspect.iscoroutinefunction(Scope.close)
    assert inspect.iscoroutinefunction(KeyedTasks.close)
