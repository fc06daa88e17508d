"""What is submitted is called as it stands, is a task of its scope, and its ending is its submitter's."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import sys
import threading
import traceback
import weakref
from collections.abc import Awaitable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

import pytest

import handfast
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.threads.submit_queue import HAS_EAGER_TASKS
from tests.runtime.wrapped_loop import ForeignLoop


async def described(*args: object, **kwargs: object) -> str:
    return f"{args} {kwargs}"


async def fails() -> None:
    raise ValueError("expected")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("limit", [None, 1])
def test_arguments_go_through_as_they_are(kind: str, limit: int | None) -> None:
    """Positional ones, named ones, none; with a limit on the scope and without."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(limit=limit)
        assert scope.submit(described).result() == "() {}"
        assert scope.submit(described, 1, 2).result() == "(1, 2) {}"
        assert scope.submit(described, 1, a=2).result() == "(1,) {'a': 2}"
        assert scope.submit(described, function=1, self=2).result() == (
            "() {'function': 1, 'self': 2}"
        )
        assert scope.close_from_thread().clean


def test_an_error_is_the_submitters_and_touches_no_sibling(kind: str) -> None:
    """S2.4 of its own message: the scope lives on, though a failure would cancel it."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="cancel")
        sibling = scope.submit(forever)
        with pytest.raises(ValueError, match="expected"):
            scope.submit(fails).result()
        with pytest.raises(TypeError, match="positional argument"):
            scope.submit(fails, 1).result()  # type: ignore[call-arg]
        assert not sibling.done()
        report = scope.close_from_thread()
        assert (report.clean, len(report.cancelled)) == (True, 1)
        with pytest.raises(CancelledError):
            sibling.result()


def test_an_error_makes_no_cycle_with_its_answer() -> None:
    """S3.8: its traceback leads to the submitted function, and not to the answer."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(fails)
        error = answer.exception()
        assert error is not None
        assert traceback.extract_tb(error.__traceback__)[-1].name == "fails"
        foreign.turn()
        gone = weakref.ref(answer)
        gc.disable()
        try:
            del answer, error
            foreign.turn()
            assert gone() is None
        finally:
            gc.enable()
        scope.close_from_thread()


def test_asking_for_a_failed_answer_makes_no_cycle() -> None:
    """The traceback refers to the caller's frame, which must not refer to the future."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        answer = scope.submit(fails)
        with pytest.raises(ValueError, match="expected"):
            answer.result()
        foreign.turn()
        gone = weakref.ref(answer)
        gc.disable()
        try:
            del answer
            assert gone() is None
        finally:
            gc.enable()
        scope.close_from_thread()


def test_an_answer_keeps_neither_its_arguments_nor_its_task() -> None:
    """S3.8: keeping futures keeps nothing else alive."""

    class Big:
        pass

    async def takes(big: Big) -> None:
        pass

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        big = Big()
        gone = weakref.ref(big)
        answer = scope.submit(takes, big)
        answer.result()
        foreign.turn()
        del big
        assert gone() is None
        scope.close_from_thread()


def test_a_submission_is_a_task_with_name_and_origin(kind: str) -> None:
    """Its origin is the line that submitted it, also through a BackgroundLoop."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        lines = [inspect.currentframe().f_lineno + 1]  # type: ignore[union-attr]
        answers = [scope.submit(forever)]
        lines.append(lines[0] + 2)
        answers.append(scope.submit(partial(forever)))
        foreign.turn()
        assert [task.get_name() for task in scope.tasks] == ["forever", "forever"]
        cancelled = scope.close_from_thread().cancelled
        origins = [ending.origin for ending in cancelled]
        assert [(o.filename, o.lineno) for o in origins if o] == [(__file__, n) for n in lines]
        del answers


def test_each_call_of_a_batch_has_its_own_name(kind: str) -> None:
    """Also where one function follows another."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        for function in (forever, forever, asyncio.Event().wait, forever):
            scope.submit(function)
        gate.set()
        foreign.turn()
        names = [task.get_name() for task in scope.tasks]
        assert names == ["forever", "forever", "Event.wait", "forever"]
        scope.close_from_thread()


def test_a_callable_object_may_be_submitted() -> None:
    """Whatever gives something to await; it is known by its class."""
    names: list[str] = []

    class Fetch:
        def __call__(self) -> Awaitable[int]:
            task = asyncio.current_task()
            assert task is not None
            names.append(task.get_name().rpartition(".")[2])
            return asyncio.sleep(0, 42)

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        assert scope.submit(Fetch()).result() == 42
        scope.close_from_thread()
    assert names == ["Fetch"]


def test_the_limit_of_the_scope_counts_submissions() -> None:
    """No more than two at once."""
    at_once, most = 0, 0

    async def work() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1

    with ForeignLoop() as foreign:
        scope = foreign.scope(limit=2)
        # The loop starts them only when all are there, however slow this thread is.
        submitted = threading.Event()
        foreign.loop.call_soon_threadsafe(submitted.wait)
        futures = [scope.submit(work) for _ in range(20)]
        submitted.set()
        for future in futures:
            future.result()
        scope.close_from_thread()
    assert most == 2


def test_submitting_on_the_loop_itself_works_and_waiting_there_says_what_to_do() -> None:
    """S2.6: a blocking wait on the loop's own thread raises instead of waiting for ever."""

    async def main() -> int:
        async with handfast.Scope() as scope:
            answer = scope.submit(asyncio.sleep, 0, 42)
            with pytest.raises(RuntimeError, match=r"await asyncio\.wrap_future"):
                answer.result()
            with pytest.raises(RuntimeError, match=r"await asyncio\.wrap_future"):
                answer.exception(timeout=10)
            with pytest.raises(TimeoutError):
                answer.result(timeout=0)
            return await asyncio.wrap_future(answer)

    assert asyncio.run(main()) == 42


def test_what_is_no_function_is_refused_at_once() -> None:
    """A coroutine in its place is closed: no "never awaited"."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        coro = fails()
        with pytest.raises(TypeError, match="takes an async function and its arguments"):
            scope.submit(coro)  # type: ignore[arg-type]
        assert inspect.getcoroutinestate(coro) == inspect.CORO_CLOSED
        with pytest.raises(TypeError, match="not 42"):
            scope.submit(42)  # type: ignore[arg-type]
        scope.close_from_thread()


def test_a_function_that_gives_nothing_to_await_is_an_error_of_its_own() -> None:
    """The submitter hears of it."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        with pytest.raises(TypeError, match="await"):
            scope.submit(lambda: 42).result()  # type: ignore[arg-type, return-value]
        scope.close_from_thread()


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_flies_through_the_loop_and_answers(
    fatal: type[BaseException], kind: str
) -> None:
    """#95571: bookkeeping first. The other calls of the batch are started when the loop goes on."""

    async def quits() -> None:
        raise fatal

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        flown: list[BaseException] = []
        foreign.stop()

        def run() -> None:
            try:
                foreign.loop.run_forever()
            except BaseException as error:
                flown.append(error)

        # Queued on a loop that runs, so that both are in one batch.
        foreign.thread = threading.Thread(target=run, daemon=True)
        with_running(foreign)
        gate = foreign.block()
        answers: list[Future[Any]] = [scope.submit(quits), scope.submit(described)]
        gate.set()
        foreign.thread.join()
        assert [type(error) for error in flown] == [fatal]
        assert type(answers[0].exception()) is fatal
        foreign.run_again()
        assert answers[1].done()
        assert len(scope) == 0


def with_running(foreign: ForeignLoop) -> None:
    started = threading.Event()
    foreign.loop.call_soon(started.set)
    foreign.thread.start()
    started.wait()


class Interrupting(dict[Any, Any]):
    """A registry in which Ctrl-C strikes, right after an entry was made."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        raise KeyboardInterrupt


@pytest.mark.parametrize("debug", [False, True])
def test_a_ctrl_c_in_the_middle_of_a_batch_loses_no_call(debug: bool) -> None:
    """#95571: the one that was being started is interrupted if its first step is taken at once, and
    otherwise has its task; the others are started later."""
    answers: list[Future[Any]] = []

    async def submit(scope: handfast.Scope) -> None:
        scope._registry.live = Interrupting()
        answers.extend(scope.submit(described) for _ in range(3))

    async def make() -> handfast.Scope:
        return handfast.Scope("interrupted")

    loop = asyncio.new_event_loop()
    loop.set_debug(debug)
    scope = loop.run_until_complete(make())
    loop.create_task(submit(scope))
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(forever())
    scope._registry.live = dict(scope._registry.live)
    for _ in range(4):
        loop.call_soon(loop.stop)
        loop.run_forever()
    if HAS_EAGER_TASKS and not debug:
        assert isinstance(answers.pop(0).exception(timeout=0), KeyboardInterrupt)
    assert {answer.result(timeout=0) for answer in answers} == {"() {}"}
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(scope.close())
    loop.close()


def test_a_task_that_cannot_be_created_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A24: MemoryError in its constructor. Its coroutine is closed: a warning would be an error."""

    def no_memory(*_: object, **__: object) -> Any:
        raise MemoryError

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        foreign.do(lambda: foreign.loop.set_exception_handler(lambda *_: None))
        with monkeypatch.context() as patch:
            patch.setattr(task_creation, "new_task", no_memory)
            assert type(scope.submit(described).exception()) is MemoryError
        gc.collect()
        assert len(scope) == 0
        assert scope.submit(described).result() == "() {}"
        scope.close_from_thread()


def test_a_call_is_a_task_of_the_scope_from_its_first_step_on(kind: str) -> None:
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()

        async def registered() -> bool:
            return asyncio.current_task() in scope._registry.tasks()

        assert scope.submit(registered).result()
        scope.close_from_thread()


def test_the_task_of_a_call_that_has_ended_can_be_shown(kind: str) -> None:
    """It has no coroutine any more if it ended in its first step; get_coro() of Task would crash."""

    async def task() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        ended = scope.submit(task).result()
        foreign.turn()
        assert "finished" in repr(ended)
        scope.close_from_thread()


def test_a_task_factory_that_fails_answers_and_spares_the_others() -> None:
    """Its error goes to the loop's exception handler; the rest of the batch is started."""
    failing = True

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        nonlocal failing
        if failing:
            failing = False
            raise OSError("no more tasks")
        return asyncio.Task(coro, loop=loop, **options)

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        foreign.do(lambda: foreign.loop.set_task_factory(factory))
        gate = foreign.block()
        answers = [scope.submit(described), scope.submit(described)]
        gate.set()
        assert answers[1].result() == "() {}"
        with pytest.raises(CancelledError):
            answers[0].result()
        assert [repr(context["exception"]) for context in foreign.reported] == [
            "OSError('no more tasks')"
        ]
        foreign.reported.clear()
        assert len(scope) == 0
        scope.close_from_thread()


def test_a_factory_that_wraps_loses_no_answer_when_cancelled_before_the_first_step() -> None:
    """The task never enters the wrapped coroutine, and there is still an answer."""

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        async def wrapped() -> Any:
            return await coro

        task: asyncio.Task[Any] = asyncio.Task(wrapped(), loop=loop, **options)
        task.cancel()
        return task

    with ForeignLoop() as foreign:
        scope = foreign.scope()
        foreign.do(lambda: foreign.loop.set_task_factory(factory))
        answer = scope.submit(described)
        with pytest.raises(CancelledError):
            answer.result()
        foreign.loop.call_soon_threadsafe(foreign.loop.set_task_factory, None)
        assert len(scope) == 0
        scope.close_from_thread()


def test_a_submission_runs_in_the_context_of_its_submitter(kind: str) -> None:
    """As `run_coroutine_threadsafe` has it; not in that of another one in the same batch."""
    variable = contextvars.ContextVar("variable", default="nobody's")

    async def look() -> str:
        value = variable.get()
        variable.set("changed")
        return value

    with ForeignLoop(kind) as foreign:
        scope = foreign.scope()
        gate = foreign.block()
        answers = []
        for name in ("first", "second"):
            variable.set(name)
            answers.append(scope.submit(look))
        gate.set()
        assert [answer.result() for answer in answers] == ["first", "second"]
        assert variable.get() == "second"
        scope.close_from_thread()


def test_refcounts_do_not_grow() -> None:
    """S3.8: a thousand answers, finished, failed and cancelled, and none is left."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()

        def some() -> None:
            answers: list[Any] = []
            for _ in range(100):
                answers += [scope.submit(described), scope.submit(fails), scope.submit(forever)]
                answers[-1].cancel()
            for answer in answers:
                if not answer.cancelled():
                    answer.exception()
            while len(scope):
                foreign.turn()

        some()
        gc.collect()
        before = sys.getrefcount(scope._registry), len(gc.get_objects())
        for _ in range(3):
            some()
        gc.collect()
        after = sys.getrefcount(scope._registry), len(gc.get_objects())
        assert after[0] <= before[0]
        assert after[1] <= before[1] + 50
        scope.close_from_thread()
