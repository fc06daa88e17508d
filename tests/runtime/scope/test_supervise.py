"""Each run of a service: a task and a context of its own, one at a time, none after the close. A15."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from handfast import Restart, Scope
from handfast.errors import RestartLimit
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping

VARIABLE: ContextVar[str] = ContextVar("variable", default="unset")
SOON = Restart(backoff=0)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def now() -> float:
    return asyncio.get_running_loop().time()


async def fail() -> None:
    raise ValueError("child")


def test_a_service_is_restarted_after_a_task_group_in_it_failed_while_joining(
    any_kind: str,
) -> None:
    """A15: on 3.11 and 3.12 that leaves cancelling() at 1 (#116720), as after a cancel."""
    starts: list[int] = []
    errors: list[BaseException] = []

    async def service(done: asyncio.Event) -> None:
        me = asyncio.current_task()
        assert me is not None
        starts.append(me.cancelling())
        if len(starts) == 3:
            done.set()
            await forever()
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    async def main() -> None:
        done = asyncio.Event()
        async with Scope("services", on_failure=errors_into(errors)) as scope:
            scope.supervise(service, done, restart=SOON)
            await done.wait()

    run_on(any_kind, main())
    assert starts == [0, 0, 0]
    assert len(errors) == 2


def test_each_run_has_a_task_and_a_context_of_its_own(any_kind: str) -> None:
    """A15: what one run has set is not seen by the next."""
    seen: list[str] = []
    tasks: list[asyncio.Task[Any] | None] = []

    async def service(done: asyncio.Event) -> None:
        seen.append(VARIABLE.get())
        tasks.append(asyncio.current_task())
        VARIABLE.set("set by a run")
        if len(seen) == 3:
            done.set()

    async def main() -> None:
        done = asyncio.Event()
        VARIABLE.set("of the caller")
        async with Scope("services") as scope:
            task = scope.supervise(service, done, restart=Restart("always", 9, backoff=0))
            await done.wait()
        assert task not in tasks

    run_on(any_kind, main())
    assert seen[:3] == ["of the caller"] * 3
    assert len(set(tasks)) == len(tasks)


@pytest.mark.parametrize("when", ["failure", "always"])
@pytest.mark.parametrize("ends", [2, 8])
def test_nothing_is_restarted_while_the_scope_closes(when: Any, ends: float) -> None:
    """A15: neither at its end in the grace nor after a pause that lasts into it."""
    starts: list[float] = []

    async def service() -> None:
        starts.append(now())
        await asyncio.sleep(ends)
        if when == "failure":
            raise ValueError("work")

    async def main(_: Stepping) -> None:
        scope = Scope("services", on_failure=lambda _: None)
        scope.supervise(service, restart=Restart(when, backoff=4))
        scope.spawn(asyncio.sleep(20))
        await asyncio.sleep(5)
        await scope.close(grace=30, timeout=60)
        assert now() == 20

    run_stepping(main)
    assert starts == [0]


def test_a_service_cleans_up_once_wherever_it_is_cancelled() -> None:
    """A15: one cancel is passed on; a second one does not cut the clean-up."""

    async def program(stepping: Stepping) -> tuple[int, int]:
        begun = ended = 0

        async def service() -> None:
            nonlocal begun, ended
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                begun += 1
                await asyncio.sleep(1)
                ended += 1
                raise
            raise ValueError("work")

        scope = Scope("services", on_failure=lambda _: None)
        task = scope.supervise(service, restart=Restart(intensity=2, backoff=1))
        await asyncio.wait({stepping.victim(task)})
        assert len(scope) == 0
        await scope.close()
        return begun, ended

    for times in (1, 2, 3):
        runs = list(cancel_everywhere(program, times=times))
        assert len(runs) > 10
        assert set(runs) == {(0, 0), (1, 1)}


def test_the_end_of_the_loop_does_not_cut_the_clean_up(any_kind: str) -> None:
    """asyncio.run cancels every task that it knows; the run of a service gets one cancel of it."""
    ended: list[str] = []

    async def service() -> None:
        try:
            await forever()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            ended.append("service")

    scopes: list[Scope] = []

    async def main() -> None:
        scopes.append(Scope("services", on_failure="report"))
        scopes[0].supervise(service)
        await asyncio.sleep(0.001)

    with asyncio.Runner() as runner:
        runner.run(main())
    assert ended == ["service"]
    scopes[0].close_from_thread()


def test_a_cancel_that_a_service_swallows_is_not_lost() -> None:
    """A16: its task is cancelled all the same."""

    async def service() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            return

    async def main(_: Stepping) -> bool:
        scope = Scope("services")
        task = scope.supervise(service, restart=Restart("always"))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        await scope.close()
        return task.cancelled()

    assert run_stepping(main)


def test_a_service_that_does_not_end_is_reported_where_it_waits() -> None:
    """Not where its supervisor waits."""

    async def service(gate: asyncio.Event) -> None:
        while not gate.is_set():
            try:
                await gate.wait()  # here
            except asyncio.CancelledError:
                continue

    async def main(_: Stepping) -> tuple[str, ...]:
        gate = asyncio.Event()
        scope = Scope("services", on_failure="report")
        task = scope.supervise(service, gate, name="poller")
        await asyncio.sleep(1)
        report = await scope.close(timeout=2)
        gate.set()
        await asyncio.wait({task})
        (straggler,) = report.stragglers
        assert straggler.name == "poller"
        return straggler.stack

    stack = run_stepping(main)
    assert any("in test_a_service_that_does_not_end" in line for line in stack)


# --- periodic jobs ------------------------------------------------------------------------------


def periodic(lasts: list[float], every: float, until: float, **options: Any) -> list[float]:
    """The times at which a job starts whose runs take so long."""
    starts: list[float] = []
    running = 0

    async def job() -> None:
        nonlocal running
        starts.append(now())
        running += 1
        assert running == 1
        await asyncio.sleep(lasts.pop(0) if lasts else 0)
        running -= 1

    async def main(_: Stepping) -> None:
        async with Scope("jobs") as scope:
            scope.supervise(job, every=every, **options)
            await asyncio.sleep(until)

    run_stepping(main)
    return starts


def test_a_periodic_job_does_not_drift() -> None:
    """Its times are counted from the first start, however long each run takes."""
    assert periodic([0.5, 9.5, 3, 0.1], 10, 45) == [0, 10, 20, 30, 40]


def test_a_periodic_job_skips_the_times_at_which_it_still_runs() -> None:
    """There is no second run beside it, and no burst afterwards."""
    assert periodic([25, 10], 10, 65) == [0, 30, 50, 60]


def test_a_periodic_job_starts_once_for_each_time() -> None:
    """The multiples of 0.3 are no floats: a run may end just before the time at which it has started."""

    async def main(_: Stepping) -> int:
        starts: list[float] = []

        async def job() -> None:
            starts.append(now())

        await asyncio.sleep(3)
        async with Scope("jobs") as scope:
            scope.supervise(job, every=0.3)
            await asyncio.sleep(3.1)
        return len(starts)

    assert run_stepping(main) == 11


def test_a_periodic_job_starts_once_for_a_timer_that_fires_early(kind: str) -> None:
    """The clock of uvloop has milliseconds, and it was run several times in each of them."""

    async def main() -> float:
        starts: list[float] = []
        done = asyncio.Event()

        async def job() -> None:
            starts.append(now())
            if len(starts) == 30:
                done.set()

        begin = now()
        async with Scope("jobs") as scope:
            scope.supervise(job, every=0.003)
            await done.wait()
        return starts[-1] - begin

    assert run_on(kind, main()) > 28 * 0.003


def test_a_periodic_job_does_not_count_as_restarted_when_it_returns() -> None:
    """A hundred runs within the window of one restart."""
    assert len(periodic([], 0.25, 25.1, restart=Restart(intensity=1))) == 101


def test_a_periodic_job_that_fails_runs_again_at_its_next_time() -> None:
    """As often as its policy allows; after the pause, if that is longer."""
    starts: list[float] = []
    reported: list[str] = []

    async def job() -> None:
        starts.append(now())
        raise ValueError("work")

    async def main(_: Stepping) -> None:
        scope = Scope("jobs", on_failure=lambda end: reported.append(type(end.error).__name__))
        restart = Restart(intensity=3, period=1000, backoff=4)
        task = scope.supervise(job, every=10, restart=restart)
        await asyncio.wait({task})
        assert isinstance(task.exception(), RestartLimit)
        await scope.close()

    run_stepping(main)
    assert starts == [0, 10, 20, 40]
    assert len(reported) == 4


@pytest.mark.parametrize(
    ("every", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError), (True, TypeError)]
)
def test_a_period_that_is_none_is_refused(every: Any, error: type[Exception]) -> None:
    async def main(_: Stepping) -> None:
        async with Scope("jobs") as scope:
            with pytest.raises(error, match="every must be"):
                scope.supervise(forever, every=every)

    run_stepping(main)
