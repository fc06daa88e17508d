"""Closing a long-lived scope: bounded, in order, truthful, whatever happens to the closer."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator

import pytest

import handfast
from handfast.types import TaskEnd
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def swallow(log: list[str]) -> None:
    """Cancelled once, it continues; cancelled twice, it would end."""
    for _ in range(2):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            log.append("swallowed")
    log.append("gone")


def test_close_cancels_and_joins_until_nothing_is_pending(kind: str) -> None:
    """S4.1, S4.2, S0.5: every child is tracked by itself, cancelled and joined."""

    async def main() -> None:
        ended = 0

        async def child() -> None:
            nonlocal ended
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0)
                ended += 1

        scope = handfast.Scope("s")
        tasks = [scope.spawn(child()) for _ in range(10)]
        await asyncio.sleep(0)
        assert len(scope) == 10
        assert set(scope.tasks) == set(tasks)
        report = await scope.close()
        assert (len(report.cancelled), ended, len(scope)) == (10, 10, 0)
        assert report.clean
        assert scope.tasks == ()

    run_on(kind, main())


def test_work_that_ends_within_the_grace_is_not_cancelled() -> None:
    async def program(_: Stepping) -> str:
        scope = handfast.Scope("s", grace=10)
        scope.spawn(asyncio.sleep(5), name="quick")
        scope.spawn(asyncio.sleep(50), name="slow")
        return str(await scope.close())

    assert run_stepping(program) == "scope 's' closed: 1 finished, 1 cancelled"


def test_the_grace_ends_as_soon_as_all_have_finished() -> None:
    async def program(stepping: Stepping) -> float:
        scope = handfast.Scope("s")
        scope.spawn(asyncio.sleep(2))
        await scope.close(grace=60, timeout=100)
        return stepping.loop.time()

    assert run_stepping(program) == pytest.approx(2)


@pytest.mark.parametrize(("timeout", "ends"), [(None, 30), (20, 18)])
def test_a_grace_leaves_time_for_the_cancel(timeout: float | None, ends: float) -> None:
    """A task that ends as soon as it is cancelled is no straggler, however long the grace was."""

    async def program(stepping: Stepping) -> float:
        scope = handfast.Scope("s", grace=30, timeout=timeout)
        scope.spawn(asyncio.sleep(3600))
        report = await scope.close()
        assert report.clean
        assert len(report.cancelled) == 1
        return stepping.loop.time()

    assert run_stepping(program) == pytest.approx(ends)


def test_close_returns_within_its_deadline_and_names_the_straggler() -> None:
    """S3.7: its name, where it was created, how old it is, where it waits. One cancel only."""

    async def program(stepping: Stepping) -> None:
        log: list[str] = []
        scope = handfast.Scope("bot")
        task = scope.spawn(swallow(log), name="listener")
        await asyncio.sleep(3)
        report = await scope.close(timeout=5)
        assert stepping.loop.time() == pytest.approx(8)
        assert log == ["swallowed"]
        (straggler,) = report.stragglers
        assert straggler.name == "listener"
        assert straggler.origin is not None
        assert straggler.origin.source.startswith("task = scope.spawn(swallow(log)")
        assert straggler.age == pytest.approx(8)
        assert "in swallow" in straggler.stack[0]
        assert not report.clean
        assert "still running: listener (8.0 s old, created at" in str(report)
        with pytest.raises(ExceptionGroup) as caught:
            report.raise_if_unclean()
        assert handfast.split_errors(caught.value).operational == ()
        assert isinstance(
            handfast.split_errors(caught.value).cleanup[0], handfast.errors.StragglersLeft
        )
        # Closing again waits for it, and does not cancel it again.
        task.cancel()
        assert (await scope.close()).stragglers == ()
        assert log == ["swallowed", "swallowed", "gone"]

    run_stepping(program)


def test_a_swallower_at_the_end_of_async_with_does_not_hang() -> None:
    async def program(stepping: Stepping) -> list[str]:
        log: list[str] = []
        with pytest.raises(handfast.errors.CleanupErrors) as caught:
            async with handfast.Scope("s", grace=0, timeout=5) as scope:
                task = scope.spawn(swallow(log))
                await asyncio.sleep(0)
        assert isinstance(caught.value.exceptions[0], handfast.errors.StragglersLeft)
        assert stepping.loop.time() == pytest.approx(5)
        task.cancel()
        await asyncio.wait({task})
        return log

    assert run_stepping(program) == ["swallowed", "swallowed", "gone"]


def test_cancelling_the_closer_anywhere_cuts_nothing_short() -> None:
    """S3.4: the close goes on to its end, once; then the CancelledError is raised."""

    async def program(stepping: Stepping) -> tuple[bool, int, list[str]]:
        log: list[str] = []

        async def tidy() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                log.append("begin")
                await asyncio.sleep(1)
                log.append("end")

        scope = handfast.Scope("s")
        scope.spawn(tidy())
        await asyncio.sleep(0)
        closer = stepping.victim(asyncio.create_task(scope.close()))
        await asyncio.wait({closer})
        if not log:  # the closer was cancelled before its first step
            await scope.close()
        return closer.cancelled(), len(scope), log

    for times in (1, 3):
        outcomes = list(cancel_everywhere(program, times=times))
        assert len(outcomes) > 3
        assert all(outcome == (True, 0, ["begin", "end"]) for outcome in outcomes[:-1])
        assert outcomes[-1] == (False, 0, ["begin", "end"])


def test_many_closers_share_one_close() -> None:
    async def program(_: Stepping) -> list[str]:
        log: list[str] = []

        async def tidy() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(1)
                log.append("cleaned up")

        scope = handfast.Scope("s")
        scope.spawn(tidy())
        await asyncio.sleep(0)
        reports = await asyncio.gather(*(scope.close(timeout=n + 2) for n in range(5)))
        assert {str(report) for report in reports} == {"scope 's' closed: 1 cancelled"}
        return log

    assert run_stepping(program) == ["cleaned up"]


def test_an_impatient_closer_gets_a_report_as_of_its_own_deadline() -> None:
    async def program(stepping: Stepping) -> tuple[int, float]:
        async def slow() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(5)

        scope = handfast.Scope("s")
        scope.spawn(slow())
        await asyncio.sleep(0)
        patient = asyncio.create_task(scope.close(timeout=20))
        await asyncio.sleep(1)
        report = await scope.close(timeout=1)
        at = stepping.loop.time()
        assert (await patient).clean
        return len(report.stragglers), at

    stragglers, at = run_stepping(program)
    assert stragglers == 1
    assert at == pytest.approx(2)


def test_the_loops_own_teardown_waits_for_a_close_under_way() -> None:
    """main ends while another task closes a scope: asyncio.run cancels the closer, which holds
    on until the clean-up has come to its end."""
    log: list[str] = []
    closers: list[asyncio.Task[handfast.types.CloseReport]] = []

    async def flush() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        log.append("cleaned up")

    async def tidy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await handfast.shielded(flush())

    async def main() -> None:
        scope = handfast.Scope("s")
        scope.spawn(tidy())
        await asyncio.sleep(0)
        closers.append(asyncio.create_task(scope.close()))
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert log == ["cleaned up"]
    assert closers[0].cancelled()


def test_close_refuses_new_work_from_the_first_moment() -> None:
    """S2.5: late calls are refused with an error."""

    async def program(_: Stepping) -> list[str]:
        reported: list[str] = []
        scope = handfast.Scope("s")

        async def late() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                try:
                    scope.spawn(asyncio.sleep(1), name="latecomer")
                except handfast.errors.ScopeClosed as error:
                    reported.append(str(error))

        scope.spawn(late())
        await asyncio.sleep(0)
        await scope.close()
        with pytest.raises(handfast.errors.ScopeClosed, match="is closed"):
            scope.spawn(asyncio.sleep(1))
        return reported

    (message,) = run_stepping(program)
    assert message.startswith("spawn(latecomer) refused: scope 's' (created at ")
    assert message.endswith("is cancelling")


def test_failures_are_in_the_report_with_their_origin() -> None:
    """S4.7: errors are reported and the counts are true."""

    async def program(_: Stepping) -> None:
        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError("boom")

        async def untidy() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                raise OSError("disk")

        scope = handfast.Scope("s", on_failure="cancel")
        scope.spawn(fail())
        scope.spawn(untidy())
        scope.spawn(asyncio.sleep(3600), name="idle")
        await asyncio.sleep(2)
        assert scope.closing
        report = await scope.close()
        (failed,) = report.failed
        assert repr(failed.error) == "ValueError('boom')"
        assert failed.origin is not None
        assert failed.origin.source == "scope.spawn(fail())"
        assert [repr(error) for error in report.cleanup_errors] == ["OSError('disk')"]
        assert [ending.name for ending in report.cancelled] == ["idle"]
        lines = str(report).splitlines()
        assert lines[0] == "scope 's' closed: 1 cancelled, 1 failed, 1 clean-up errors"
        assert "ValueError('boom')" in lines[1]
        assert "OSError('disk')" in lines[2]

    run_stepping(program)


def test_a_handler_gets_every_failure_and_siblings_live_on() -> None:
    async def program(_: Stepping) -> list[str]:
        seen: list[BaseException] = []

        async def fail(after: float) -> None:
            await asyncio.sleep(after)
            raise ValueError(after)

        scope = handfast.Scope("s", on_failure=errors_into(seen))
        scope.spawn(fail(1))
        scope.spawn(fail(2))
        scope.spawn(asyncio.sleep(3600))
        await asyncio.sleep(5)
        assert len(scope) == 1
        await scope.close()
        assert "created at" in seen[0].__notes__[0]
        return [repr(error) for error in seen]

    assert run_stepping(program) == ["ValueError(1)", "ValueError(2)"]


def test_a_handler_that_fails_is_reported_to_the_loop() -> None:
    async def program(stepping: Stepping) -> str:
        def handler(end: TaskEnd) -> None:
            raise KeyError("handler")

        async def fail() -> None:
            raise ValueError

        scope = handfast.Scope("s", on_failure=handler)
        scope.spawn(fail())
        await asyncio.sleep(1)
        await scope.close()
        return repr(stepping.errors.pop()["exception"])

    assert run_stepping(program) == "KeyError('handler')"


def test_under_report_an_awaited_failure_is_raised_where_it_is_awaited() -> None:
    async def program(stepping: Stepping) -> list[str]:
        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError("boom")

        scope = handfast.Scope("s", on_failure="report")
        task = scope.spawn(fail())
        with pytest.raises(ValueError, match="boom"):
            await task
        assert not stepping.errors
        scope.spawn(fail())
        await asyncio.sleep(2)
        await scope.close()
        return [repr(stepping.errors.pop()["exception"])]

    assert run_stepping(program) == ["ValueError('boom')"]


def test_a_task_cannot_wait_for_the_end_of_its_own_scope(kind: str) -> None:
    async def main() -> None:
        async def closes_its_owner() -> None:
            await scope.close()

        scope = handfast.Scope("s", on_failure="report")
        task = scope.spawn(closes_its_owner())
        with pytest.raises(RuntimeError, match="cannot wait for the end"):
            await task
        await scope.close()

    run_on(kind, main())


def test_a_scope_that_was_never_used_closes_clean(kind: str) -> None:
    async def main() -> str:
        return str(await handfast.Scope("s").close())

    assert run_on(kind, main()) == "scope 's' closed: nothing was running"


# --- order ---------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def resource(name: str, log: list[str]) -> AsyncIterator[str]:
    log.append(f"+{name}")
    try:
        yield name
    finally:
        await asyncio.sleep(1)
        log.append(f"-{name}")


async def user(name: str, log: list[str]) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(1)
        log.append(f"-{name}")


def test_tasks_end_before_what_is_held_and_that_in_reverse_order() -> None:
    """S4.3: tasks are closed before the session and the pool that they use."""

    async def program(_: Stepping) -> list[str]:
        log: list[str] = []
        scope = handfast.Scope("s")
        scope.spawn(user("first", log))
        await scope.hold(resource("pool", log))
        await scope.hold(resource("session", log))
        scope.spawn(user("second", log))
        await asyncio.sleep(0)
        assert (await scope.close()).clean
        return log

    log = run_stepping(program)
    assert log[:2] == ["+pool", "+session"]
    assert sorted(log[2:4]) == ["-first", "-second"]
    assert log[4:] == ["-session", "-pool"]


def test_a_held_scope_ends_after_the_tasks_and_before_what_was_held_earlier(any_kind: str) -> None:
    """S4.3: a scope held by a scope gives any order."""

    async def main() -> list[str]:
        log: list[str] = []

        @contextlib.asynccontextmanager
        async def session() -> AsyncIterator[None]:
            yield
            log.append("session")

        async def work(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                log.append(name)

        scope = handfast.Scope("app")
        await scope.hold(session())
        jobs = await scope.hold(handfast.Scope("jobs", grace=0))
        scope.spawn(work("poller"))
        jobs.spawn(work("job"))
        await asyncio.sleep(0)
        report = await scope.close()
        assert report.clean
        return log

    assert run_on(any_kind, main()) == ["poller", "job", "session"]


def test_a_swallower_on_top_does_not_leave_what_lies_below_unasked() -> None:
    async def program(stepping: Stepping) -> None:
        log: list[str] = []
        scope = handfast.Scope("s")
        await scope.hold(resource("session", log))
        task = scope.spawn(swallow(log))
        await asyncio.sleep(0)
        report = await scope.close(timeout=20)
        assert stepping.loop.time() == pytest.approx(20)
        assert [straggler.name for straggler in report.stragglers] == ["swallow"]
        assert log == ["+session", "swallowed", "-session"]
        task.cancel()
        await scope.close()

    run_stepping(program)


def test_closing_at_any_moment_of_the_build_up_leaves_nothing() -> None:
    """The owner is closed while it is still being filled: at every step."""

    async def program(stepping: Stepping) -> tuple[int, list[str]]:
        log: list[str] = []
        scope = handfast.Scope("s")

        async def build() -> None:
            await scope.hold(resource("pool", log))
            scope.spawn(user("task", log))
            await scope.hold(resource("session", log))
            await asyncio.sleep(1)

        builder = stepping.victim(asyncio.create_task(build()))
        await asyncio.wait({builder})
        await scope.close()
        entered = [entry[1:] for entry in log if entry.startswith("+")]
        left = [entry[1:] for entry in log if entry.startswith("-") and entry != "-task"]
        assert sorted(entered) == sorted(left)
        return len(scope), sorted(left)

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 5
    assert all(count == 0 for count, _ in outcomes)
    assert outcomes[-1] == (0, ["pool", "session"])


# --- very many -----------------------------------------------------------------------------


@pytest.mark.parametrize("enabled", [True, False])
def test_closing_very_many_leaves_the_collector_as_it_was(enabled: bool) -> None:
    async def program(_: Stepping) -> tuple[int, list[bool]]:
        seen: list[bool] = []

        async def look() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                seen.append(gc.isenabled())

        scope = handfast.Scope("s")
        for _turn in range(1500):
            scope.spawn(look())
        await asyncio.sleep(0)
        report = await scope.close()
        return len(report.cancelled), seen

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        count, seen = run_stepping(program)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert count == 1500
    assert set(seen) == {False}  # out of the way while they end, whatever had switched it off


def test_very_many_that_wait_for_one_event_are_not_searched_for_from_the_wrong_end() -> None:
    """asyncio's own queue of waiters is searched from its oldest: so those are cancelled first."""

    async def program(_: Stepping) -> list[int]:
        order: list[int] = []
        event = asyncio.Event()

        async def wait(number: int) -> None:
            try:
                await event.wait()
            finally:
                order.append(number)

        scope = handfast.Scope("s")
        for number in range(100):
            scope.spawn(wait(number))
        await asyncio.sleep(0)
        await scope.close()
        return order

    assert run_stepping(program) == list(range(100))
