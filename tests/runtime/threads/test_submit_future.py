"""A SubmitFuture behaves as a stock concurrent future, and has one outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

import pytest

import handfast
from handfast._runtime.threads import submit_future as answer_module
from handfast._runtime.threads.submit_future import SubmitFuture
from tests.runtime.program.line_tracing import before_every_line
from tests.runtime.wrapped_loop import ForeignLoop


async def value() -> str:
    return "value"


async def fails() -> None:
    raise ValueError("expected")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def new_answer() -> SubmitFuture[Any]:
    """One that belongs to a scope whose loop is not needed."""
    return SubmitFuture(handfast.Scope("no loop")._registry)


def settle(answer: SubmitFuture[Any], how: str) -> None:
    if how == "value":
        answer.resolve("value")
    elif how == "error":
        answer.resolve_error(ValueError("expected"))
    else:
        answer.resolve_cancelled()


def read(answer: Future[Any]) -> str:
    """Its outcome, read in every possible way."""
    assert answer.done()
    assert not answer.running()
    try:
        result = answer.result(timeout=0)
    except CancelledError:
        assert answer.cancelled()
        with pytest.raises(CancelledError):
            answer.exception(timeout=0)
        return "cancelled"
    except ValueError:
        assert isinstance(answer.exception(), ValueError)
        assert not answer.cancelled()
        return "error"
    assert answer.exception() is None
    assert not answer.cancelled()
    return str(result)


each_way = pytest.mark.parametrize("how", ["value", "error", "cancelled"])


@each_way
@pytest.mark.parametrize("before", [False, True])
def test_wait_and_as_completed_and_callbacks_hear_of_it(how: str, before: bool) -> None:
    """S2.8: whether they looked before the answer came, or after."""
    called: list[str] = []
    answers = [new_answer() for _ in range(3)]
    waited: list[object] = []

    def wait() -> None:
        waited.append(futures.wait(answers).done == set(answers))
        waited.append(set(futures.as_completed(answers)) == set(answers))

    thread = threading.Thread(target=wait)
    if before:
        for answer in answers:
            answer.add_done_callback(lambda each: called.append(read(each)))
        thread.start()
    for answer in answers:
        settle(answer, how)
    if not before:
        for answer in answers:
            answer.add_done_callback(lambda each: called.append(read(each)))
        thread.start()
    thread.join()
    assert waited == [True, True]
    assert called == [how] * 3
    assert [read(answer) for answer in answers] == [how] * 3


@each_way
def test_it_is_given_once(how: str) -> None:
    """The second outcome changes nothing, and returns False."""
    for second in ("value", "error", "cancelled"):
        answer = new_answer()
        settle(answer, how)
        settle(answer, second)
        assert read(answer) == how
        assert answer.resolve_error(OSError("too late")) is False
        assert answer.cancel() is (how == "cancelled")
        assert read(answer) == how


def test_a_wait_for_something_else_times_out() -> None:
    """Nobody answers, and the loop runs."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(forever)
        with pytest.raises(TimeoutError):
            answer.result(timeout=0.001)
        with pytest.raises(TimeoutError):
            answer.exception(timeout=0)
        assert not answer.done()
        scope.close_from_thread()
        assert read(answer) == "cancelled"


def test_it_says_how_it_stands() -> None:
    """As a stock future does."""
    answer = new_answer()
    assert "state=pending" in repr(answer)
    answer.resolve(42)
    assert "state=finished returned int" in repr(answer)
    assert not hasattr(answer, "nothing_of_the_kind")


def test_nothing_is_created_before_it_is_read() -> None:
    """The attributes of a stock future cost more than the task behind it."""
    answer = new_answer()
    answer.resolve("value")
    assert answer.result() == "value"
    assert "_condition" not in vars(answer)


def test_cancelling_an_answer_cancels_its_task_once(kind: str) -> None:
    """A second cancel would cut its clean-up: not by the answer, and not by a close."""
    steps: list[str] = []
    in_clean_up, go_on = threading.Event(), threading.Event()

    async def work() -> None:
        try:
            await forever()
        finally:
            in_clean_up.set()
            while not go_on.is_set():
                await asyncio.sleep(0)
            steps.append("cleaned")

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        answer = scope.submit(work)
        foreign.turn()
        assert answer.cancel()
        in_clean_up.wait()
        assert answer.cancel()
        closer = threading.Thread(target=scope.close_from_thread)
        closer.start()
        while not scope.closing:
            foreign.turn()
        go_on.set()
        closer.join()
        assert read(answer) == "cancelled"
    assert steps == ["cleaned"]


def test_a_call_that_was_cancelled_before_its_start_is_not_started(kind: str) -> None:
    """The loop has not come to it."""
    started: list[str] = []

    async def work() -> None:
        started.append("work")

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        answer = scope.submit(work)
        assert answer.cancel()
        gate.set()
        foreign.turn()
        assert scope.close_from_thread().clean
    assert started == []


def test_a_task_that_was_cancelled_on_the_loop_answers(kind: str) -> None:
    """Before its first step, and later."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        for _ in range(2):
            answer = scope.submit(forever)
            foreign.do(lambda: [task.cancel() for task in scope.tasks])
            with pytest.raises(CancelledError):
                answer.result()
        gate = foreign.block()
        answer = scope.submit(forever)
        foreign.loop.call_soon_threadsafe(lambda: [task.cancel() for task in scope.tasks])
        gate.set()
        with pytest.raises(CancelledError):
            answer.result()
        scope.close_from_thread()


def test_asyncio_can_wait_for_it_and_its_cancel_goes_through() -> None:
    """On another loop, by `wrap_future`."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()

        async def other_loop() -> None:
            assert await asyncio.wrap_future(scope.submit(value)) == "value"
            with pytest.raises(ValueError, match="expected"):
                await asyncio.wrap_future(scope.submit(fails))
            waiting = scope.submit(forever)
            wrapped = asyncio.wrap_future(waiting)
            wrapped.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wrapped
            await asyncio.sleep(0)  # the callback that passes it on
            assert waiting.cancelled()

        asyncio.run(other_loop())
        while len(scope):
            foreign.turn()
        scope.close_from_thread()


def test_two_threads_that_wait_for_the_same_answers_do_not_block_each_other() -> None:
    """`futures.wait` takes all conditions in the order of the futures: none may share a lock."""
    stock: Future[str] = Future()
    answers = [new_answer() for _ in range(4)]
    locks = {id(answer._condition._lock) for answer in answers}  # type: ignore[attr-defined]
    assert len(locks) == 4
    threads = [
        threading.Thread(target=futures.wait, args=([*chosen, stock],))
        for chosen in (answers[:3], answers[1:], answers[::2])
    ]
    for thread in threads:
        thread.start()
    for answer in answers:
        answer.resolve("value")
    stock.set_result("value")
    for thread in threads:
        thread.join()


# --- another thread at every line ------------------------------------------------------------


def held() -> bool:
    """Whether this thread is where the other cannot go: it waits for the lock then."""
    return bool(getattr(answer_module._resolving, "_is_owned")())  # noqa: B009


def competitors() -> dict[str, Callable[[SubmitFuture[Any], list[str]], object]]:
    def callback(answer: SubmitFuture[Any], heard: list[str]) -> None:
        answer.add_done_callback(lambda each: heard.append(read(each)))

    return {
        "cancel": lambda answer, heard: heard.append(f"cancel {answer.cancel()}"),
        "refuse": lambda answer, heard: heard.append(
            f"refuse {answer.resolve_error(ValueError('expected'))}"
        ),
        "callback": callback,
        "wait": lambda answer, heard: futures.wait([answer], timeout=0),
        "condition": lambda answer, heard: answer.done(),
    }


@pytest.mark.parametrize("competitor", competitors())
def test_the_value_and_another_thread_at_the_same_moment(competitor: str) -> None:
    """S2.7: `resolve` stopped before each of its lines. One answer, heard once, by everybody."""
    act = competitors()[competitor]
    outcomes: set[str] = set()

    def prepare() -> tuple[Callable[[], None], Callable[[], object], Callable[[None], None]]:
        answer = new_answer()
        heard: list[str] = []
        late: list[str] = []

        def check(_: None) -> None:
            how = read(answer)
            answer.add_done_callback(lambda each: late.append(read(each)))
            assert late == [how]
            assert {
                "cancel": heard == [f"cancel {how == 'cancelled'}"],
                "refuse": heard == [f"refuse {how == 'error'}"],
                "callback": heard == [how],
            }.get(competitor, how == "value")
            assert futures.wait([answer], timeout=0).done == {answer}
            outcomes.add(how)

        return partial(answer.resolve, "value"), partial(act, answer, heard), check

    lines = list(before_every_line((answer_module,), prepare, waits=held))
    assert len(lines) >= 4
    assert outcomes >= {"value"}
    if competitor in ("cancel", "refuse"):
        assert len(outcomes) == 2  # each of the two has been the first


@pytest.mark.parametrize("how", ["value", "error", "cancelled"])
def test_a_watcher_that_begins_while_the_answer_comes_gets_it(how: str) -> None:
    """S2.7: the making of the condition stopped before each of its lines."""

    def prepare() -> tuple[Callable[[], str], Callable[[], object], Callable[[str], None]]:
        answer = new_answer()
        heard: list[str] = []

        def watch() -> str:
            answer.add_done_callback(lambda each: heard.append(read(each)))
            return "watched"

        def check(_: str) -> None:
            assert heard == [how]
            assert read(answer) == how

        return watch, partial(settle, answer, how), check

    assert len(list(before_every_line((answer_module,), prepare, waits=held))) >= 5
