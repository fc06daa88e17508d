"""S2.6 and S4.4: a blocking close from any thread, bounded, with a report that is true."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import handfast
from handfast._runtime.threads.cross_thread_call import run_across_threads
from handfast.errors import ScopeClosed
from tests.runtime.wrapped_loop import ForeignLoop


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def names(entries: tuple[Any, ...]) -> list[str]:
    return [entry.name for entry in entries]


def test_it_cancels_and_joins_and_says_how_that_went(kind: str) -> None:
    """S2.6, S4.7: the counts are true."""
    order: list[str] = []

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            order.append("cleaned")

    async def fails() -> None:
        try:
            await forever()
        finally:
            raise ValueError("in clean-up")

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        scope.submit(cleans_up)
        foreign.do(lambda: scope.spawn(forever(), name="plain"))
        foreign.do(lambda: scope.spawn(fails(), name="failing"))
        report = scope.close_from_thread()
        order.append("closed")
        assert names(report.cancelled) == [f"{cleans_up.__qualname__}", "plain"]
        assert [str(error) for error in report.cleanup_errors] == ["in clean-up"]
        assert not report.clean
        assert scope.closed
        foreign.reported.clear()
    assert order == ["cleaned", "closed"]


def test_the_grace_is_given() -> None:
    """What can finish by itself does."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        gate = foreign.do(asyncio.Event)
        answer = scope.submit(gate.wait)
        foreign.turn()
        closer: list[Any] = []
        thread = threading.Thread(
            target=lambda: closer.append(scope.close_from_thread(grace=1000, timeout=2000))
        )
        thread.start()
        while not scope.closing:
            foreign.turn()
        foreign.do(gate.set)
        thread.join()
        assert names(closer[0].finished) == ["Event.wait"]
        assert answer.result() is True


def test_on_the_loops_own_thread_it_raises() -> None:
    """S2.6: it would wait for itself. The scope is not touched."""

    async def main() -> None:
        async with handfast.Scope("own") as scope:
            with pytest.raises(RuntimeError, match=r"block the loop .* await scope\.close"):
                scope.close_from_thread()
            assert await scope.spawn(asyncio.sleep(0, "goes on")) == "goes on"

    asyncio.run(main())


@pytest.mark.parametrize("options", [{"timeout": -1}, {"grace": -1}, {"grace": float("nan")}])
def test_a_negative_span_is_refused_at_once(options: dict[str, float]) -> None:
    """And nothing has been closed."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        with pytest.raises(ValueError, match="zero or more"):
            scope.close_from_thread(**options)
        assert scope.submit(asyncio.sleep, 0, "goes on").result() == "goes on"
        scope.close_from_thread()


def test_a_blocked_loop_does_not_hold_it_up() -> None:
    """S2.6: it names who is still running, and refuses new work; the loop ends them when it can."""
    with ForeignLoop() as foreign:
        scope = foreign.scope("blocked")
        started = scope.submit(forever)
        foreign.turn()
        gate = foreign.block()
        waiting = scope.submit(forever)
        report = scope.close_from_thread(timeout=0.01)
        assert names(report.stragglers) == ["forever"]
        assert report.stragglers[0].origin is not None
        assert report.stragglers[0].stack
        with pytest.raises(ScopeClosed, match=r"refused: scope 'blocked' .* is closing"):
            scope.submit(forever)
        assert isinstance(waiting.exception(), ScopeClosed)
        assert not started.done()
        gate.set()
        while not scope.closed:
            foreign.turn()
        assert started.cancelled()
        again = scope.close_from_thread()
        assert (names(again.cancelled), again.clean) == (["forever"], True)


def test_a_swallower_of_cancels_does_not_hold_it_up() -> None:
    """S2.6: its deadline lies a little before the time-out, so that the report is in time."""
    over = threading.Event()

    async def stubborn() -> None:
        while not over.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                pass

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(stubborn)
        foreign.turn()
        report = scope.close_from_thread(timeout=0.1)
        assert names(report.stragglers) == [stubborn.__qualname__]
        while not scope.closed:
            foreign.turn()
        over.set()
        answer.result()


@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_a_loop_that_does_not_run_gives_a_true_report(how: str) -> None:
    """S2.6: nobody can end these tasks, and so they are not called cancelled."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        foreign.do(lambda: scope.spawn(forever(), name="left"))
        foreign.do(lambda: scope.spawn(asyncio.sleep(0), name="gone"))
        foreign.turn()
        foreign.stop()
        if how == "closed":
            foreign.abandon()
        report = scope.close_from_thread()
        assert names(report.stragglers) == ["left"]
        assert (report.finished, report.cancelled, scope.closed) == ((), (), False)
        if how == "stopped":
            foreign.run_again()  # the close was left there, and goes on
            assert scope.closed
            assert names(scope.close_from_thread().cancelled) == ["left"]


@pytest.mark.parametrize("how", ["never run", "stopped", "closed"])
def test_an_empty_scope_on_a_loop_that_does_not_run_is_closed(how: str) -> None:
    """S2.6: there is nothing to wait for."""
    with ForeignLoop() as foreign:
        scope = handfast.Scope("empty") if how == "never run" else foreign.scope("empty")
        if how == "stopped":
            foreign.stop()
        elif how == "closed":
            foreign.abandon()
        report = scope.close_from_thread()
        assert (report.clean, scope.closed) == (True, True)
        assert str(report) == "scope 'empty' closed: nothing was running"


def test_many_threads_may_close_at_once() -> None:
    """S2.5: one close, and each of them gets the report."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        scope.submit(forever)
        foreign.turn()
        reports: list[Any] = []
        closers = [
            threading.Thread(target=lambda: reports.append(scope.close_from_thread()))
            for _ in range(8)
        ]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join()
        assert [names(report.cancelled) for report in reports] == [["forever"]] * 8


def test_a_closer_that_is_cancelled_with_everything_else_still_reports() -> None:
    """A shutdown written by hand cancels all tasks that it sees, the close among them."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()

        async def cleans_up() -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(0)

        foreign.do(lambda: scope.spawn(cleans_up(), name="cleans up"))
        foreign.turn()
        gate = foreign.do(asyncio.Event)
        foreign.do(lambda: scope.spawn(gate.wait(), name="waits"))
        reports: list[Any] = []
        closer = threading.Thread(
            target=lambda: reports.append(scope.close_from_thread(grace=1000, timeout=2000))
        )
        closer.start()
        while not scope.closing:
            foreign.turn()
        foreign.loop.call_soon_threadsafe(
            lambda: [task.cancel() for task in asyncio.all_tasks(foreign.loop)]
        )
        closer.join()
        assert sorted(names(reports[0].cancelled)) == ["cleans up", "waits"]


# --- the crossing itself ------------------------------------------------------------------------


async def value() -> int:
    return 42


async def broken() -> int:
    raise ValueError("expected")


async def cancelled() -> int:
    raise asyncio.CancelledError


def test_a_value_and_an_error_come_across() -> None:
    """Nothing that goes wrong there is lost here."""
    with ForeignLoop() as foreign:
        assert run_across_threads(foreign.loop, value, 10) == 42
        with pytest.raises(ValueError, match="expected"):
            run_across_threads(foreign.loop, broken, 10)
        assert run_across_threads(foreign.loop, cancelled, 10) is None


def test_an_error_that_comes_too_late_is_reported_to_the_loop() -> None:
    """Nobody waits for it any more."""
    with ForeignLoop() as foreign:
        gate = foreign.block()
        assert run_across_threads(foreign.loop, broken, 0.001) is None
        gate.set()
        foreign.turn()
        foreign.turn()
        while not foreign.reported:
            foreign.turn()
        assert [repr(context["exception"]) for context in foreign.reported] == [
            "ValueError('expected')"
        ]
        foreign.reported.clear()


def test_a_loop_that_ends_with_the_crossing_begun_says_nothing() -> None:
    """Its task was made in the very last turn: nothing is "never awaited" or "destroyed"."""
    with ForeignLoop() as foreign:
        stopping, go = threading.Event(), threading.Event()

        def last() -> None:
            stopping.set()
            go.wait()

        foreign.loop.call_soon_threadsafe(last)
        stopping.wait()
        ended: list[object] = []
        waiter = threading.Thread(
            target=lambda: ended.append(run_across_threads(foreign.loop, value, 1000))
        )
        scheduled = foreign.loop.call_soon_threadsafe

        def then_go(*args: Any) -> Any:
            handle = scheduled(*args)
            scheduled(foreign.loop.stop)
            go.set()
            return handle

        foreign.loop.call_soon_threadsafe = then_go  # type: ignore[method-assign, assignment]
        waiter.start()
        waiter.join()
        foreign.thread.join()
        del foreign.loop.call_soon_threadsafe
        assert ended == [None]
        foreign.abandon()
        gc.collect()


def test_a_loop_that_is_closed_or_stops_meanwhile_ends_the_wait() -> None:
    """The waiter looks up from time to time."""
    with ForeignLoop() as foreign:
        entered = threading.Event()

        async def never() -> None:
            entered.set()
            await forever()

        ended: list[object] = []
        thread = threading.Thread(
            target=lambda: ended.append(run_across_threads(foreign.loop, never, 1000))
        )
        thread.start()
        entered.wait()
        foreign.stop()
        thread.join()
        assert ended == [None]
        foreign.abandon()
        assert run_across_threads(foreign.loop, value, 1000) is None
