"""S2.8: a submission to a loop that has stopped or closed, at every moment at which it can."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import handfast
from handfast._runtime.threads import submit_queue as submission
from handfast._runtime.threads.submit_future import SubmitFuture
from handfast.errors import LoopStopped, ScopeClosed
from tests.runtime.program.line_tracing import before_every_line
from tests.runtime.wrapped_loop import ForeignLoop


async def value() -> str:
    return "value"


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_before_the_loop_has_started() -> None:
    """The scope does not know a loop yet; or knows one that does not run yet."""
    with pytest.raises(LoopStopped, match=r"scope 'early' .* has stopped and cannot run this call"):
        handfast.Scope("early").submit(value)


def test_after_the_loop_has_stopped_and_after_it_has_closed() -> None:
    """At once, with a clear error, before anything is made of the call."""
    with ForeignLoop() as foreign:
        scope = foreign.scope("late")
        foreign.stop()
        with pytest.raises(LoopStopped, match=r"scope 'late' \(created at "):
            scope.submit(value)
        foreign.loop.close()
        with pytest.raises(LoopStopped, match="submit while the loop runs"):
            scope.submit(value)
        scope.close_from_thread()


def test_a_closed_scope_refuses_at_once() -> None:
    """S2.5."""
    with ForeignLoop() as foreign:
        scope = foreign.scope("shut")
        scope.close_from_thread()
        with pytest.raises(
            ScopeClosed, match=r"submit\(value\) refused: scope 'shut' .* is closed"
        ):
            scope.submit(value)


def submitted_in_the_last_turn(
    foreign: ForeignLoop, scope: handfast.Scope, function: Callable[[], Any] = value
) -> list[futures.Future[Any]]:
    """Calls that come in while the loop is in its last turn: the wake-up is for the next one."""
    stopping, go = threading.Event(), threading.Event()

    def last() -> None:
        foreign.loop.stop()
        stopping.set()
        go.wait()

    foreign.loop.call_soon_threadsafe(last)
    stopping.wait()
    answers = [scope.submit(function) for _ in range(3)]
    go.set()
    foreign.thread.join()
    return answers


class StopsMeanwhile(asyncio.SelectorEventLoop):
    """A loop that stops right after somebody has looked whether it runs."""

    looks = math.inf

    def is_running(self) -> bool:
        self.looks -= 1
        return super().is_running() and self.looks >= 0


def test_a_loop_that_stops_right_after_the_look_is_found_out_at_once() -> None:
    """There is a second look, when the call is in: nobody may have to wait for a heartbeat."""
    loop = StopsMeanwhile()
    with ForeignLoop(loop) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        loop.looks = 1
        answer = scope.submit(value)
        assert answer.done()
        loop.looks = math.inf
        assert isinstance(answer.exception(), LoopStopped)
        gate.set()
        scope.close_from_thread()


def test_a_scope_that_fails_before_it_has_started_the_calls_refuses_them(kind: str) -> None:
    """S2.5: a failure has closed it; nobody else is there who could refuse them."""
    started: list[str] = []

    async def work() -> None:
        started.append("work")

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope("failed", on_failure="cancel")
        now = foreign.do(asyncio.Event)

        async def fails() -> None:
            await now.wait()
            raise ValueError("expected")

        foreign.do(lambda: scope.spawn(fails()).done())
        foreign.turn()
        # The failure lies in the queue before the wake-up.
        gate = foreign.block(now.set)
        answers = [scope.submit(work) for _ in range(2)]
        gate.set()
        for answer in answers:
            with pytest.raises(ScopeClosed, match=r"'failed' .* is cancelling"):
                answer.result()
        assert not scope.close_from_thread().clean
    assert started == []


@pytest.mark.parametrize("ask", ["result", "exception"])
def test_a_loop_that_stops_before_it_has_started_the_calls_resolves_waiting_futures(
    ask: str,
) -> None:
    """It announces nothing, so the waiter looks up from time to time."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        for answer in submitted_in_the_last_turn(foreign, scope):
            if ask == "result":
                with pytest.raises(LoopStopped):
                    answer.result()
            else:
                assert isinstance(answer.exception(), LoopStopped)
            assert answer.done()
        scope.close_from_thread()


def test_a_loop_that_stops_in_the_middle_of_a_call_resolves_waiting_futures() -> None:
    """And if the loop goes on after all, the call whose answer was no is cancelled."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(forever)
        foreign.turn()
        foreign.stop()
        with pytest.raises(LoopStopped):
            answer.result()
        assert len(scope) == 1
        foreign.run_again()
        assert len(scope) == 0
        scope.close_from_thread()


def test_a_call_whose_answer_was_no_is_not_started_when_the_loop_goes_on(kind: str) -> None:
    """The submitter got an error that it did not run."""
    started: list[str] = []

    async def work() -> None:
        started.append("work")

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        errors = [answer.exception() for answer in submitted_in_the_last_turn(foreign, scope, work)]
        foreign.run_again()
        scope.close_from_thread()
    # On uvloop they may run in the last turn, from 3.12 on.
    assert {type(error) for error in errors} <= {LoopStopped, type(None)}
    assert started == ["work"] * errors.count(None)


def test_a_loop_that_stopped_after_it_was_woken_is_an_error_of_the_next_call() -> None:
    """S2.8: the calls before it are refused too, and not only when someone asks for their answers."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answers = submitted_in_the_last_turn(foreign, scope)
        with pytest.raises(LoopStopped, match="has stopped"):
            scope.submit(value)
        assert all(answer.done() for answer in answers)
        foreign.run_again()
        scope.close_from_thread()


def watched(answers: list[futures.Future[Any]], how: str) -> tuple[threading.Thread, list[str]]:
    """A thread that only watches, and what it hears."""
    heard: list[str] = []

    def look() -> None:
        done = futures.wait(answers).done if how == "wait" else futures.as_completed(answers)
        heard.extend(type(answer.exception()).__name__ for answer in done)

    def hear(answer: futures.Future[Any]) -> None:
        heard.append(type(answer.exception()).__name__)

    if how == "callback":
        for answer in answers:
            answer.add_done_callback(hear)
    thread = threading.Thread(target=list if how == "callback" else look)
    thread.start()
    return thread, heard


each_watch = pytest.mark.parametrize("how", ["wait", "as_completed", "callback"])


@each_watch
def test_a_loop_that_closes_before_it_has_started_the_calls_resolves_watched_futures(
    how: str,
) -> None:
    """They have no heartbeat; but a loop that closes drops the wake-up, and that answers."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answers = submitted_in_the_last_turn(foreign, scope)
        thread, heard = watched(answers, how)
        assert heard == []
        foreign.loop.close()
        thread.join()
        assert heard == ["LoopStopped"] * 3
        scope.close_from_thread()


@each_watch
@pytest.mark.parametrize("end", ["stopped", "closed"])
def test_closing_the_scope_resolves_watched_futures_a_call_that_was_cut(how: str, end: str) -> None:
    """The loop has gone in the middle of it. The report says who is still running."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answers: list[futures.Future[Any]] = [scope.submit(forever) for _ in range(3)]
        foreign.turn()
        foreign.stop()
        if end == "closed":
            foreign.abandon()
        thread, heard = watched(answers, how)
        assert heard == []
        report = scope.close_from_thread()
        thread.join()
        assert heard == ["LoopStopped"] * 3
        assert [straggler.name for straggler in report.stragglers] == ["forever"] * 3


def test_dropping_the_scope_resolves_watched_futures_a_call_that_was_cut(kind: str) -> None:
    """The tasks go with it, and say so."""
    with ForeignLoop(kind) as foreign:
        scope: handfast.Scope | None = foreign.scope("dropped")
        assert scope is not None
        answers: list[futures.Future[Any]] = [scope.submit(forever) for _ in range(3)]
        foreign.turn()
        foreign.abandon()
        with pytest.warns(ResourceWarning, match="scope 'dropped' .* forever"):
            scope = None
            gc.collect()
        assert scope is None
        assert futures.wait(answers).not_done == set()
        assert {type(answer.exception()) for answer in answers} == {LoopStopped}


def test_a_cancel_on_a_closed_loop_is_an_answer() -> None:
    """There is no task any more that could be cancelled."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(forever)
        foreign.turn()
        foreign.abandon()
        assert answer.cancel()
        assert answer.cancelled()
        scope.close_from_thread()


# --- the loop or the scope ends at every line of a submission ----------------------------------


def ways_to_end() -> dict[str, Callable[[ForeignLoop, handfast.Scope], object]]:
    return {
        "the scope closes": lambda foreign, scope: scope.close_from_thread(),
        "the loop stops": lambda foreign, scope: foreign.stop(),
        "the loop closes": lambda foreign, scope: foreign.abandon(),
        "the scope closes and the loop stops": lambda foreign, scope: (
            scope.close_from_thread(),
            foreign.stop(),
        ),
        "the scope closes and the loop closes": lambda foreign, scope: (
            scope.close_from_thread(),
            foreign.abandon(),
        ),
    }


@pytest.mark.parametrize("end", ways_to_end())
def test_a_submission_that_is_overtaken_by_the_end_is_answered(end: str) -> None:
    """S2.7: stopped before each line of `submit`. It raises, or its answer comes."""
    refused: list[type[BaseException]] = []
    foreigns: list[ForeignLoop] = []

    def prepare() -> tuple[
        Callable[[], SubmitFuture[Any] | Exception], Callable[[], object], Callable[..., None]
    ]:
        foreign = ForeignLoop().__enter__()
        foreigns.append(foreign)
        scope = foreign.scope()

        def submit() -> SubmitFuture[Any] | Exception:
            try:
                answer = scope.submit(value)
                assert isinstance(answer, SubmitFuture)
                return answer
            except (LoopStopped, ScopeClosed) as error:
                return error

        def check(outcome: SubmitFuture[Any] | Exception) -> None:
            if isinstance(outcome, Exception):
                refused.append(type(outcome))
                return
            # Not by the heartbeat: everybody who only watches hears of it, too.
            if not foreign.loop.is_closed():
                foreign.abandon()
            scope.close_from_thread()
            assert futures.wait([outcome], timeout=0).done
            error = outcome.exception()
            assert error is None or isinstance(error, (LoopStopped, ScopeClosed))

        return submit, partial(ways_to_end()[end], foreign, scope), check

    try:
        assert len(list(before_every_line((submission,), prepare))) >= 8
    finally:
        for foreign in foreigns:
            foreign.close()
    assert refused


@pytest.mark.parametrize("end", ["the scope closes", "another submission"])
def test_a_drain_that_is_overtaken_leaves_no_call_behind(end: str) -> None:
    """S2.7: stopped before each line of `drain`, on the loop; the other comes from a thread."""

    def prepare() -> tuple[Callable[[], None], Callable[[], object], Callable[[None], None]]:
        loop = asyncio.new_event_loop()
        made: list[handfast.Scope] = []

        async def make() -> None:
            made.append(handfast.Scope("drained"))

        loop.run_until_complete(make())
        scope = made[0]
        answers: list[futures.Future[str]] = []

        async def begin() -> None:
            for _ in range(2):
                with suppress(ScopeClosed):
                    answers.append(scope.submit(value))

        def drain() -> None:
            loop.run_until_complete(begin())
            # The wake-up lies ready; running it is what is traced.
            loop.call_soon(loop.stop)
            loop.run_forever()

        def other() -> None:
            if end == "another submission" and loop.is_running():
                answers.append(scope.submit(value))
            elif end == "the scope closes":
                # What a close in another thread does there, while the loop is in its drain.
                scope._submit_queue.stop_accepting()
                scope._submit_queue.refuse_waiting()

        def check(nothing: None) -> None:
            for _ in range(3):
                loop.call_soon(loop.stop)
                loop.run_forever()
            assert futures.wait(answers, timeout=0).not_done == set()
            assert len(scope) == 0
            loop.run_until_complete(scope.close())
            loop.close()

        return drain, other, check

    assert len(list(before_every_line((submission,), prepare))) >= 20
