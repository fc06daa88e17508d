"""Clean-up that no cancel cuts short, within its own deadline; then the cancel goes on (S3.4)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import handfast
from handfast._runtime.uncancellable import redeliver_cancel
from tests.runtime.hosting.resources import outcome, place, tear_down_everywhere
from tests.support.stepping import Stepping, SteppingLoop, cancel_everywhere, run_on, run_stepping


class Flush:
    """A clean-up of several turns that notes how far it came."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    async def __call__(self, result: str = "flushed") -> str:
        self.begun += 1
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        await asyncio.sleep(0)
        self.ended += 1
        return result


async def swallow(release: asyncio.Event) -> None:
    while not release.is_set():
        try:
            await release.wait()  # it stands here
        except asyncio.CancelledError:
            pass


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_it_gives_back_the_result(kind: str) -> None:
    assert run_on(kind, _await(handfast.shielded(asyncio.sleep(0, "flushed")))) == "flushed"


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


# --- cancels -----------------------------------------------------------------------------------


async def in_finally(flush: Flush) -> None:
    try:
        await asyncio.sleep(1)
    finally:
        await handfast.shielded(flush())


async def in_a_time_out(flush: Flush) -> None:
    try:
        async with asyncio.timeout(0.5):
            await handfast.shielded(flush())
    except TimeoutError:
        assert flush.ended == 1


async def one_in_the_other(flush: Flush) -> None:
    async def inner() -> None:
        await handfast.shielded(flush())

    await handfast.shielded(inner())


async def directly(flush: Flush) -> None:
    await handfast.shielded(flush())


@pytest.mark.parametrize("use", [in_finally, in_a_time_out, one_in_the_other, directly])
def test_it_completes_however_often_the_caller_is_cancelled_and_then_the_cancel_goes_on(
    use: Callable[[Flush], Awaitable[None]],
) -> None:
    """S3.4: at every step, with one cancel, two and five."""

    async def program(stepping: Stepping) -> str:
        flush = Flush()

        async def caller() -> None:
            try:
                await use(flush)
            finally:
                assert flush.begun == flush.ended
                assert flush.ended <= 1

        task = stepping.victim(asyncio.create_task(outcome(caller)))
        await asyncio.wait({task})
        # Cancelled before its first step it has not come to its clean-up.
        assert flush.begun == flush.ended == (not task.cancelled())
        return "never began" if task.cancelled() else task.result()

    for times in (1, 2, 5):
        ends = list(cancel_everywhere(program, times=times))
        assert ends[0] == "never began"
        assert set(ends[1:-1]) == {"cancelled"}
        assert ends[-1] == "finished"
        assert len(ends) > 5


@pytest.mark.parametrize("times", [1, 2, 5])
def test_as_a_task_of_its_own_it_completes_even_if_it_is_cancelled_before_its_first_step(
    times: int,
) -> None:
    """S3.4: such a task never enters its coroutine. Nothing is "never awaited"."""

    async def program(stepping: Stepping) -> bool:
        flush = Flush()
        task = stepping.victim(asyncio.create_task(handfast.shielded(flush())))
        await asyncio.wait({task})
        assert flush.ended == 1
        return task.cancelled()

    ends = list(cancel_everywhere(program, times=times))
    assert ends == [True] * (len(ends) - 1) + [False]
    gc.collect()


def test_as_a_child_of_a_task_group_and_of_a_scope(kind: str) -> None:
    async def main() -> list[str]:
        async with asyncio.TaskGroup() as group:
            one = group.create_task(handfast.shielded(asyncio.sleep(0, "one")))
        async with handfast.Scope("s") as scope:
            two = scope.spawn(handfast.shielded(asyncio.sleep(0, "two")))
        assert two.get_name() == "shielded(sleep)"
        scope = handfast.Scope("s", on_failure="report")
        scope.spawn(handfast.shielded(asyncio.sleep(0, "three")))
        await scope.close()
        return [one.result(), two.result()]

    assert run_on(kind, main()) == ["one", "two"]
    gc.collect()


def test_the_teardown_of_the_loop_does_not_cut_it() -> None:
    """S3.4: main returns while a task in the background is in its clean-up; at every step."""
    flushes: list[Flush] = []

    async def start() -> asyncio.Task[str]:
        flushes.append(Flush())
        return asyncio.create_task(outcome(directly, flushes[-1]))

    ends = list(tear_down_everywhere(start))
    assert ends[-1] == "finished"
    assert len(ends) > 3
    assert all(flush.begun == flush.ended for flush in flushes)
    assert sum(flush.ended for flush in flushes) >= len(ends) - 1


def test_an_anyio_scope_that_cancels_at_every_turn_neither_cuts_it_nor_holds_it_up() -> None:
    """S3.4"""

    async def flush(done: list[str]) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        done.append("flushed")

    async def program(stepping: Stepping) -> bool:
        done: list[str] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            await handfast.shielded(flush(done))
        assert done == ["flushed"]
        return scope.cancelled_caught

    assert run_stepping(program)


def test_under_an_anyio_time_out_the_deadline_is_kept_also_with_a_swallower(kind: str) -> None:
    """S3.4: its cancels come at every turn, before any timer: the deadline must not depend on one."""

    async def main() -> str:
        release = asyncio.Event()
        ends: list[str] = []
        with anyio.CancelScope() as scope:
            scope.cancel()
            ends.append(await outcome(lambda: handfast.shielded(swallow(release), timeout=0.01)))
        release.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return ends[0]

    assert run_on(kind, main()) == "StragglersLeft"


# --- the deadline ------------------------------------------------------------------------------


def test_what_takes_longer_than_the_deadline_is_cut_and_says_where_it_stood() -> None:
    """S3.4"""

    async def slow() -> None:
        await asyncio.sleep(60)  # it stands here

    async def program(stepping: Stepping) -> float:
        with pytest.raises(TimeoutError) as caught:
            await handfast.shielded(slow(), timeout=5)
        assert "slow took more than 5 s; it was waiting at" in str(caught.value)
        assert str(caught.value).endswith(place(slow, "stands here"))
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        return stepping.loop.time()

    assert run_stepping(program) == 4.95


def test_a_swallower_is_named_when_the_deadline_is_over() -> None:
    """S3.3, S3.4, S3.7"""

    async def program(stepping: Stepping) -> float:
        release = asyncio.Event()
        with pytest.raises(handfast.errors.StragglersLeft) as caught:
            await handfast.shielded(swallow(release), timeout=5)
        words = str(caught.value)
        assert words.startswith("not ended within 5 s: swallow (5.0 s old, created at ")
        assert place(program, "await handfast.shielded") + ", waiting at" in words
        assert words.endswith(place(swallow, "stands here") + ")")
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        elapsed = stepping.loop.time()
        release.set()
        await asyncio.sleep(0.1)
        return elapsed

    assert run_stepping(program) == 5


def test_an_error_of_a_straggler_goes_to_the_loop_in_the_end() -> None:
    """S3.6"""
    reported: list[dict[str, Any]] = []

    async def late(release: asyncio.Event) -> None:
        await swallow(release)
        raise OSError("in the end")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        release = asyncio.Event()
        assert (
            await outcome(lambda: handfast.shielded(late(release), timeout=1)) == "StragglersLeft"
        )
        gc.collect()
        release.set()
        await asyncio.sleep(1)
        gc.collect()

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert [repr(context["exception"]) for context in reported] == ["OSError('in the end')"]


def test_a_straggler_that_is_all_that_refers_to_itself_is_not_collected() -> None:
    """The loop alone would hold it weakly."""
    reported: list[dict[str, Any]] = []
    waits: list[weakref.ref[asyncio.Future[None]]] = []

    async def alone() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waits.append(weakref.ref(future))
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                pass

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        assert await outcome(lambda: handfast.shielded(alone(), timeout=1)) == "StragglersLeft"
        gc.collect()
        future = waits[0]()
        assert future is not None, "it was collected in the middle of its clean-up"
        future.set_result(None)
        await asyncio.sleep(1)

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert reported == []


def test_what_ends_well_after_it_was_cut_has_ended_well() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "saved"
        return "never"

    async def program(stepping: Stepping) -> str:
        return await handfast.shielded(stubborn(), timeout=5)

    assert run_stepping(program) == "saved"


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 5])
def test_an_error_surfaces_marked_as_clean_up_and_the_cancel_strikes_at_the_next_await(
    times: int,
) -> None:
    """S3.4, S3.6: at every step."""

    async def program(stepping: Stepping) -> tuple[bool, str]:
        log: list[str] = []

        async def caller() -> None:
            with pytest.raises(OSError, match="disk full") as caught:
                await handfast.shielded(fail(OSError("disk full")))
            assert handfast.split_errors(caught.value) == handfast.types.Failure(
                (), (caught.value,)
            )
            log.append("OSError")
            await asyncio.sleep(0)
            await asyncio.sleep(1)
            log.append("went on")

        task = stepping.victim(asyncio.create_task(caller()))
        await asyncio.wait({task})
        assert task.cancelling() <= times  # each is counted once
        return task.cancelled(), " ".join(log)

    runs = list(cancel_everywhere(program, times=times))
    assert runs[0] == (True, "")
    assert set(runs[1:-1]) == {(True, "OSError")}
    assert runs[-1] == (False, "OSError went on")


def test_a_cancel_that_its_sender_has_taken_back_does_not_strike() -> None:
    """S3.2: the error passes through the time-out that sent it (`uncancel` does not clear a pending
    cancel before 3.13). The same through a scope."""

    async def failing_clean_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("disk full")

    async def program(stepping: Stepping) -> None:
        with pytest.raises(OSError, match="disk full"):
            async with asyncio.timeout(1):
                await handfast.shielded(failing_clean_up(), timeout=5)
        await asyncio.sleep(0)
        with pytest.raises(handfast.errors.CleanupErrors):
            async with asyncio.timeout(1), handfast.Scope("s") as scope:
                scope.spawn(failing_clean_up())
                await asyncio.sleep(60)
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0

    run_stepping(program)


def test_a_cancel_that_was_not_sent_is_not_delivered() -> None:
    async def program(stepping: Stepping) -> None:
        redeliver_cancel(asyncio.CancelledError())
        await asyncio.sleep(1)

    run_stepping(program)


def test_an_error_keeps_its_cause_and_covers_no_operational_error() -> None:
    """S3.6: `raise ... from` in the clean-up, in the course of an operational error."""

    async def close() -> None:
        try:
            raise ConnectionError("reset")
        except ConnectionError as error:
            raise OSError("not closed") from error

    async def program(stepping: Stepping) -> BaseException:
        try:
            try:
                raise LookupError("the work")
            finally:
                await handfast.shielded(close())
        except OSError as error:
            return error

    error = run_stepping(program)
    assert repr(error.__cause__) == "ConnectionError('reset')"
    assert error.__context__ is error.__cause__
    assert error.__context__ is not None
    assert repr(error.__context__.__context__) == "LookupError('the work')"
    failure = handfast.split_errors(error)
    assert [repr(e) for e in failure.operational] == ["LookupError('the work')"]
    assert [repr(e) for e in failure.cleanup] == ["OSError('not closed')"]


def test_a_clean_up_that_cancels_itself_is_as_if_awaited() -> None:
    async def program(stepping: Stepping) -> str:
        return await outcome(lambda: handfast.shielded(fail(asyncio.CancelledError())))

    assert run_stepping(program) == "cancelled"


def test_keyboard_interrupt_flies_once_and_the_teardown_is_completed() -> None:
    flush = Flush()

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await flush()

    async def main() -> None:
        task = asyncio.create_task(background())
        await asyncio.sleep(0)
        await handfast.shielded(fail(KeyboardInterrupt()))
        await task

    with pytest.raises(KeyboardInterrupt), asyncio.Runner(loop_factory=SteppingLoop) as runner:
        runner.run(main())
    assert flush.ended == 1


# --- input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("thing", "hint"), [(3, "not 3"), (Flush(), "call it")])
def test_what_is_no_coroutine_is_refused_at_once(thing: Any, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        _ = handfast.shielded(thing)


@pytest.mark.parametrize(("timeout", "error"), [(-1, ValueError), ("soon", TypeError)])
def test_a_timeout_that_is_none_is_refused_and_the_coroutine_closed(
    timeout: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="timeout"):
        _ = handfast.shielded(Flush()(), timeout=timeout)
    gc.collect()


def test_a_future_is_refused() -> None:
    async def program(stepping: Stepping) -> None:
        with pytest.raises(TypeError, match="takes a coroutine"):
            _ = handfast.shielded(stepping.loop.create_future())  # type: ignore[arg-type]

    run_stepping(program)


def test_what_is_closed_before_it_began_closes_the_coroutine_too() -> None:
    flush = Flush()
    work = handfast.shielded(flush())
    work.close()
    with pytest.raises(RuntimeError, match="cannot reuse"):
        work.send(None)
    gc.collect()
    assert flush.begun == 0


def test_without_a_loop_the_coroutine_is_closed() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        handfast.shielded(Flush()()).send(None)
    gc.collect()


def test_any_other_error_that_is_thrown_in_before_the_beginning_is_raised() -> None:
    work = handfast.shielded(Flush()())
    with pytest.raises(LookupError):
        work.throw(LookupError())
    gc.collect()
