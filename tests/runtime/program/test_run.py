"""`handfast.run`: what main comes to, and that nothing else is left of its loop."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

import handfast
from handfast._runtime.program.loop_shutdown import run_until_done
from tests.support.stepping import SteppingLoop, new_loop

LEFT: list[asyncio.Task[Any]] = []


def leave(coro: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
    """A task that main leaves behind. Somebody must refer to it: the loop does so weakly."""
    task = asyncio.get_running_loop().create_task(coro, name=name)
    LEFT.append(task)
    return task


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    LEFT.clear()


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def answer() -> int:
    return 42


def test_the_value_of_main_is_returned_on_each_kind_of_loop(kind: str) -> None:
    """From an async function, and from a coroutine; in debug mode, too."""
    assert handfast.run(answer, loop_factory=lambda: new_loop(kind)) == 42
    assert handfast.run(answer(), loop_factory=lambda: new_loop(kind), debug=True) == 42


def test_an_error_in_main_is_raised_as_it_is() -> None:
    """S3.6: and what it leaked is ended before."""
    ended: list[str] = []

    async def leftover() -> None:
        try:
            await forever()
        finally:
            ended.append("leftover")

    async def main() -> None:
        leave(leftover())
        await asyncio.sleep(0)
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is") as caught:
        handfast.run(main)
    assert ended == ["leftover"]
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("fatal", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_ends_a_program_flies_out_of_main(
    fatal: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """And asyncio has nothing to say about an error that nobody looked at."""

    async def main() -> None:
        raise fatal

    with pytest.raises(type(fatal)) as caught:
        handfast.run(main)
    assert caught.value is fatal
    del caught
    fatal.__traceback__ = None
    gc.collect()
    assert caplog.messages == []


def test_what_ends_a_program_flies_out_of_any_task() -> None:
    """Main is cancelled then, and its clean-up runs."""
    ended: list[str] = []

    async def quits() -> None:
        raise SystemExit(3)

    async def main() -> None:
        task = asyncio.create_task(quits())
        try:
            await forever()
        finally:
            ended.append(f"main, {task.exception()!r}")

    with pytest.raises(SystemExit):
        handfast.run(main)
    assert ended == ["main, SystemExit(3)"]


def test_what_flies_out_of_one_clean_up_keeps_no_other_from_its_end() -> None:
    """Nor does a loop.stop() in it."""
    ended: list[str] = []

    async def quits(how: Callable[[], object], name: str) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            ended.append(name)
            how()

    def quit_program() -> None:
        raise SystemExit(3)

    async def main() -> None:
        leave(quits(quit_program, "first"))
        leave(quits(asyncio.get_running_loop().stop, "second"))
        leave(quits(list, "third"))
        await asyncio.sleep(0)

    with pytest.raises(SystemExit):
        handfast.run(main)
    assert sorted(ended) == ["first", "second", "third"]
    assert all(task.done() for task in LEFT)


def test_an_error_of_main_goes_with_what_flies_out_after_it() -> None:
    """S3.6: a leftover ends the program, and that main had failed is not lost."""

    async def quits() -> None:
        try:
            await forever()
        finally:
            raise SystemExit(3)

    async def main() -> None:
        leave(quits())
        await asyncio.sleep(0)
        raise ValueError("before that")

    with pytest.raises(SystemExit) as caught:
        handfast.run(main)
    assert repr(caught.value.__cause__) == "ValueError('before that')"


def test_an_error_in_the_end_itself_is_raised() -> None:
    """It is distinguished from that of a loop that was stopped."""
    loop = asyncio.new_event_loop()

    async def broken() -> None:
        raise RuntimeError("in the end itself")

    with pytest.raises(RuntimeError, match="in the end itself"):
        run_until_done(loop, loop.create_task(broken()))
    loop.close()


def test_a_loop_that_is_stopped_under_main_says_so() -> None:
    """As `asyncio.run` does; main is ended."""
    ended: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().stop()
        try:
            await forever()
        finally:
            ended.append("main")

    with pytest.raises(RuntimeError, match="stopped before Future completed"):
        handfast.run(main)
    assert ended == ["main"]


def test_everything_ends_in_its_order() -> None:
    """S4.3: main, the tasks, async generators, the pool, the loop: each can use the next."""
    order: list[str] = []

    async def generator() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.to_thread(order.append, "generator, with a thread")

    async def leftover(numbers: AsyncIterator[int]) -> None:
        try:
            await forever()
        finally:
            order.append(f"task, with generator {inspect.isasyncgen(numbers)}")
            await asyncio.to_thread(order.append, "task, with a thread")

    async def main() -> asyncio.AbstractEventLoop:
        global kept
        kept = generator()
        await anext(kept)
        leave(leftover(kept))
        await asyncio.sleep(0)
        order.append("main")
        return asyncio.get_running_loop()

    loop = handfast.run(main)
    assert order == [
        "main",
        "task, with generator True",
        "task, with a thread",
        "generator, with a thread",
    ]
    assert loop.is_closed()
    assert not [t for t in threading.enumerate() if t.name.startswith("handfast.run")]


kept: AsyncIterator[int]


def test_a_scope_that_was_not_closed_is_closed_in_its_order() -> None:
    """S4.3: users of a held resource are joined before it is left."""
    order: list[str] = []

    class Session:
        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            order.append("session closed")

    async def uses(session: Session) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.001)
            order.append("user ended")

    async def main() -> None:
        global scope
        scope = handfast.Scope("left open")
        session = await scope.hold(Session())
        scope.spawn(uses(session))
        await asyncio.sleep(0)

    handfast.run(main)
    assert order == ["user ended", "session closed"]
    assert scope.closed


scope: handfast.Scope


def test_tasks_that_clean_up_with_new_tasks_are_joined_until_empty() -> None:
    """S2.5: latecomers included, also those of an async generator."""
    ended: list[int] = []

    async def chain(n: int) -> None:
        try:
            await forever()
        finally:
            if n:
                leave(chain(n - 1))
            ended.append(n)

    async def generator() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            leave(chain(0))
            await asyncio.sleep(0)

    async def main() -> None:
        global kept
        kept = generator()
        await anext(kept)
        leave(chain(5))
        await asyncio.sleep(0)

    handfast.run(main)
    assert ended == [5, 4, 3, 2, 1, 0, 0]


def test_leftovers_have_their_grace_and_are_cancelled_after_it() -> None:
    """In virtual time: ten seconds of grace."""
    ended: dict[str, float] = {}
    loop = SteppingLoop()

    async def sleeper(name: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            ended[name] = loop.time()

    async def main() -> None:
        leave(sleeper("soon", 5))
        leave(sleeper("late", 50))
        await asyncio.sleep(0)

    handfast.run(main, grace=10, timeout=30, loop_factory=lambda: loop)
    assert ended == {"soon": 5, "late": 10}


def test_a_swallower_is_named_at_the_deadline(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """In virtual time: the whole end, grace included, takes thirty seconds, and not more."""
    loop = SteppingLoop()
    requested: list[float] = []
    scopes: list[handfast.Scope] = []

    async def stubborn() -> None:
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                requested.append(loop.time())

    async def main() -> None:
        leave(stubborn(), name="of nobody")
        scopes.append(handfast.Scope("open"))
        LEFT.append(scopes[0].spawn(stubborn(), name="of a scope"))
        await asyncio.sleep(0)

    handfast.run(main, grace=10, timeout=30, loop_factory=lambda: loop)
    assert requested == [10, 10]
    assert loop.time() == 30
    errors = capsys.readouterr().err
    assert "still running at the end: task 'of nobody'" in errors
    assert "still running at the end: task 'of a scope' (30.0 s old, created at" in errors
    LEFT.clear()
    gc.collect()
    assert caplog.messages == []
    with pytest.warns(ResourceWarning, match="scope 'open' .* was dropped without close"):
        scopes.clear()


def test_a_program_without_standard_error_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pythonw has none."""
    monkeypatch.setattr(sys, "stderr", None)
    assert handfast.run(answer) == 42


def test_an_error_in_the_clean_up_of_a_leftover_is_reported_to_the_loop() -> None:
    """An error that nobody has looked at is never lost."""
    reported: list[dict[str, Any]] = []

    async def fails() -> None:
        try:
            await forever()
        finally:
            raise ValueError("in clean-up")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        leave(fails())
        await asyncio.sleep(0)

    handfast.run(main)
    assert [repr(context["exception"]) for context in reported] == ["ValueError('in clean-up')"]


def test_a_program_that_cancels_all_tasks_it_sees_means_its_own() -> None:
    """A habit of shutdown code. It may not hit the task that waits for main."""

    async def main() -> str:
        for task in asyncio.all_tasks():
            task.cancel()
        try:
            await forever()
        except asyncio.CancelledError:
            return "main decides"
        return "not reached"

    assert handfast.run(main) == "main decides"


def test_a_leftover_that_cancels_all_tasks_it_sees_cuts_no_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In virtual time, again and again: a task that has time until the deadline still has it."""
    loop = SteppingLoop()
    ended: list[float] = []

    async def shutdown() -> None:
        try:
            await forever()
        finally:
            for _ in range(8):
                for task in asyncio.all_tasks() - {*LEFT}:
                    task.cancel()
                await asyncio.sleep(1)
            ended.append(loop.time())

    async def main() -> None:
        leave(shutdown())
        await asyncio.sleep(0)

    handfast.run(main, timeout=30, loop_factory=lambda: loop)
    assert ended == [8]
    assert capsys.readouterr().err == ""


def test_main_that_was_cancelled_by_itself_says_so() -> None:
    """As `asyncio.run` does."""

    async def main() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        handfast.run(main)


def test_it_runs_in_a_thread_that_is_not_the_main_one() -> None:
    """Without signals, which belong to the main thread."""
    values: list[int] = []
    thread = threading.Thread(target=lambda: values.append(handfast.run(answer)))
    thread.start()
    thread.join()
    assert values == [42]


# --- bad input: a clear error at once, and the coroutine is closed ---------------------------


def closed(coro: Any) -> bool:
    return inspect.getcoroutinestate(coro) == inspect.CORO_CLOSED


def test_inside_a_running_loop_it_says_what_to_do_instead() -> None:
    """No "never awaited"."""
    coro = answer()

    async def outer() -> None:
        with pytest.raises(RuntimeError, match="await answer or spawn it in a Scope"):
            handfast.run(coro)

    asyncio.run(outer())
    assert closed(coro)


@pytest.mark.parametrize("options", [{"grace": -1}, {"timeout": -1}, {"timeout": float("nan")}])
def test_a_negative_span_is_refused(options: dict[str, float]) -> None:
    """No "never awaited"."""
    coro = answer()
    with pytest.raises(ValueError, match="must be a number of seconds, zero or more"):
        handfast.run(coro, **options)  # type: ignore[arg-type]
    assert closed(coro)


@pytest.mark.parametrize(
    "main", [None, 42, list, asyncio.sleep], ids=["None", "a number", "a class", "a function"]
)
def test_what_is_no_coroutine_is_refused(main: Any) -> None:
    """The error names it."""
    with pytest.raises(
        TypeError, match=r"takes a coroutine or an async function|missing 1 required"
    ):
        handfast.run(main)


def test_a_loop_that_cannot_be_made_leaves_no_coroutine_behind() -> None:
    """No "never awaited"."""

    def factory() -> asyncio.AbstractEventLoop:
        raise OSError("no more descriptors")

    coro = answer()
    with pytest.raises(OSError, match="no more descriptors"):
        handfast.run(coro, loop_factory=factory)
    assert closed(coro)


def test_a_task_factory_that_fails_leaves_no_loop_behind() -> None:
    """No "never awaited"."""
    loop = asyncio.new_event_loop()

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **_: Any) -> Any:
        raise OSError("no more tasks")

    loop.set_task_factory(factory)
    coro = answer()
    with pytest.raises(OSError, match="no more tasks"):
        handfast.run(coro, loop_factory=lambda: loop)
    assert closed(coro)
    assert loop.is_closed()
