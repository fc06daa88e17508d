"""BackgroundLoop: a loop in its own thread, which starts in good order and ends in good order."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast import BackgroundLoop, KeyedTasks
from handfast.errors import LoopStopped, ScopeClosed


async def value() -> str:
    return "value"


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def names(entries: tuple[Any, ...]) -> list[str]:
    return [entry.name for entry in entries]


def threads_of(name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(name)]


def test_it_takes_work_from_the_first_moment() -> None:
    """S2.8: between two runs of a loop it counts as stopped. There is no such moment here."""
    for _ in range(30):
        with BackgroundLoop("early") as background:
            assert background.submit(value).result() == "value"


def test_the_moment_between_two_runs_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2.8: the maker is let go by the very run that lasts."""
    runs: list[str] = []
    loops = asyncio.SelectorEventLoop
    run_forever = loops.run_forever

    def counted(self: asyncio.SelectorEventLoop) -> None:
        runs.append("run")
        run_forever(self)

    monkeypatch.setattr(loops, "run_forever", counted)
    background = BackgroundLoop("one run")
    try:
        assert runs == ["run"]
    finally:
        background.close()


def test_every_child_is_tracked_by_itself() -> None:
    """S4.1: with its name and the line that submitted it, not as one bundle."""
    with BackgroundLoop("children") as background:
        answers = []
        lines = []
        for _ in range(3):
            lines.append(inspect.currentframe().f_lineno + 1)  # type: ignore[union-attr]
            answers.append(background.submit(forever))
        background.submit(value).result()
        assert [task.get_name() for task in background.scope.tasks] == ["forever"] * 3
        report = background.close()
        origins = [ending.origin for ending in report.cancelled]
        assert [(o.filename, o.lineno) for o in origins if o] == [(__file__, n) for n in lines]
        assert all(answer.cancelled() for answer in answers)


def test_a_gather_is_refused_with_a_hint() -> None:
    """S4.1: the reported fix, `create_task(gather(...))`, raises as well, and does not say why."""

    async def prefetch(scope: handfast.Scope) -> str:
        bundle = asyncio.gather(value(), value())
        with pytest.raises(TypeError, match=r"gather.* spawn each child by itself"):
            scope.spawn(bundle)  # type: ignore[arg-type]
        await bundle
        return "refused"

    with BackgroundLoop("bundle") as background:
        assert background.submit(prefetch, background.scope).result() == "refused"


def test_close_cancels_and_joins_and_nothing_is_left() -> None:
    """S4.2: no task, no thread, and the loop is closed."""
    cleaned: list[str] = []

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    background = BackgroundLoop("ends")
    its_loop = background.submit(loop).result()
    background.submit(cleans_up)
    background.submit(value).result()
    assert not background.closed
    report = background.close()
    assert (report.clean, names(report.cancelled)) == (True, [cleans_up.__qualname__])
    assert cleaned == ["cleaned"]
    assert background.closed
    assert its_loop.is_closed()
    assert threads_of("ends") == []
    with pytest.raises(ScopeClosed):
        background.submit(value)


def test_tasks_end_before_what_they_use() -> None:
    """S4.3: the tasks, then the session, then what nobody owned, the pool, the loop."""
    order: list[str] = []

    class Session:
        open = True

        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            await asyncio.to_thread(order.append, "session closed, with the pool")
            self.open = False

    async def unowned() -> None:
        try:
            await forever()
        finally:
            await asyncio.to_thread(order.append, "unowned ended, with the pool")

    async def fetch(session: Session) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.001)
            order.append(f"fetch ended, session open: {session.open}")
            await asyncio.to_thread(order.append, "with the pool")

    async def prepare(scope: handfast.Scope) -> Session:
        loose.append(asyncio.get_running_loop().create_task(unowned()))
        return await scope.hold(Session())

    loose: list[asyncio.Task[None]] = []
    with BackgroundLoop("order") as background:
        session = background.submit(prepare, background.scope).result()
        background.submit(fetch, session)
        background.submit(value).result()
    assert order == [
        "fetch ended, session open: True",
        "with the pool",
        "session closed, with the pool",
        "unowned ended, with the pool",
    ]


def test_another_scope_on_the_loop_is_closed_in_its_order() -> None:
    """S4.3: also one that nobody has closed."""
    order: list[str] = []
    kept: list[handfast.Scope] = []

    class Session:
        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            order.append("session closed")

    async def uses() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            order.append("user ended")

    async def open_scope() -> None:
        scope = handfast.Scope("second")
        kept.append(scope)
        await scope.hold(Session())
        scope.spawn(uses())

    with BackgroundLoop("first") as background:
        background.submit(open_scope).result()
        background.submit(value).result()
    assert order == ["user ended", "session closed"]
    assert kept[0].closed


def test_any_thread_may_close_and_only_once() -> None:
    """S4.4: all of them get a report."""
    background = BackgroundLoop("shared")
    background.submit(forever)
    background.submit(value).result()
    reports: list[Any] = []
    closers = [
        threading.Thread(target=lambda: reports.append(background.close())) for _ in range(6)
    ]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join()
    assert [names(report.cancelled) for report in reports] == [["forever"]] * 6
    assert names(background.close().cancelled) == ["forever"]


def test_a_report_is_not_older_than_the_close_that_returns_it() -> None:
    """A13: the thread ends after a close that was too short for it."""
    entered, gate = threading.Event(), threading.Event()

    async def block() -> None:
        entered.set()
        gate.wait()

    background = BackgroundLoop("blocked")
    background.submit(block)
    entered.wait()
    assert "thread blocked" in names(background.close(timeout=0).stragglers)
    gate.set()
    thread = background._thread
    assert thread is not None
    thread.thread.join()
    assert background.close().stragglers == ()


def test_its_own_thread_may_not_close_it() -> None:
    """S2.6: it would wait for itself."""

    async def close(background: BackgroundLoop) -> None:
        background.close()

    with BackgroundLoop("own") as background:
        with pytest.raises(RuntimeError, match="'own' cannot wait in its own thread"):
            background.submit(close, background).result()
        assert background.submit(value).result() == "value"


def test_a_blocked_loop_is_named_and_does_not_hold_up_the_close() -> None:
    """S4.4: the task, and the thread that it blocks. A later call looks again."""
    gate, blocked = threading.Event(), threading.Event()

    async def blocks() -> None:
        blocked.set()
        gate.wait()

    background = BackgroundLoop("blocked")
    answer = background.submit(blocks)
    blocked.wait()
    report = background.close(timeout=0.02)
    assert names(report.stragglers) == [blocks.__qualname__, "thread blocked"]
    assert any("in blocks" in line for line in report.stragglers[0].stack) or any(
        "blocks" in line for line in report.stragglers[1].stack
    )
    assert not background.closed
    gate.set()
    report = background.close()
    assert (report.clean, background.closed) == (True, True)
    assert answer.done()


def test_a_closer_that_comes_second_has_its_own_time() -> None:
    """S4.4: the first may wait for longer than the second wants to."""
    gate, blocked = threading.Event(), threading.Event()

    async def blocks() -> None:
        blocked.set()
        gate.wait()

    background = BackgroundLoop("patient")
    background.submit(blocks)
    blocked.wait()
    first: list[Any] = []
    patient = threading.Thread(target=lambda: first.append(background.close(timeout=1000)))
    patient.start()
    while not background._closing.locked():
        pass
    second = background.close(timeout=0.01)
    assert "thread patient" in names(second.stragglers)
    gate.set()
    patient.join()
    assert first[0].stragglers == ()


def test_a_swallower_of_cancels_is_named_and_does_not_hold_up_the_close(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S4.4: the thread ends all the same."""

    async def stubborn() -> None:
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                pass

    background = BackgroundLoop("stubborn")
    answer = background.submit(stubborn)
    background.submit(value).result()
    # Enough for the close itself to be over on a busy machine: only the swallower is left then.
    report = background.close(timeout=1)
    # On a busy machine the thread may have a step to go when the time is up.
    assert names(report.stragglers)[0] == stubborn.__qualname__
    assert names(background.close().stragglers) == [stubborn.__qualname__]
    assert background.closed
    with pytest.raises(LoopStopped):
        answer.result()
    assert caplog.messages == []


def test_a_key_is_fetched_once() -> None:
    """S4.6: who comes second joins the fetch under way."""
    fetched: list[str] = []

    with BackgroundLoop("keys") as background:

        async def make() -> tuple[KeyedTasks, asyncio.Event]:
            return KeyedTasks(background.scope), asyncio.Event()

        keyed, gate = background.submit(make).result()

        async def fetch(key: str) -> str:
            fetched.append(key)
            await gate.wait()
            return key.upper()

        async def get(key: str) -> str:
            return await keyed.share(key, fetch, key)

        answers = [background.submit(get, "a") for _ in range(5)]
        background.submit(value).result()

        async def open_gate() -> None:
            gate.set()

        background.submit(open_gate).result()
        assert [answer.result() for answer in answers] == ["A"] * 5
    assert fetched == ["a"]


def test_errors_are_reported_and_the_counts_are_true() -> None:
    """S4.7: those of submissions by their answers, the others to the loop and in the report."""
    reported: list[str] = []

    async def fails(message: str) -> None:
        raise ValueError(message)

    async def fails_late(message: str) -> None:
        try:
            await forever()
        finally:
            raise ValueError(message)

    async def prepare(scope: handfast.Scope) -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(str(context["exception"]))
        )
        scope.spawn(fails("of a task"))
        scope.spawn(fails_late("in clean-up"))
        scope.spawn(forever())

    background = BackgroundLoop("errors")
    background.submit(prepare, background.scope).result()
    answers = [background.submit(fails, str(n)) for n in range(3)]
    assert [str(answer.exception()) for answer in answers] == ["0", "1", "2"]
    report = background.close()
    assert [str(error) for error in report.cleanup_errors] == ["in clean-up"]
    assert (len(report.cancelled), len(report.failed), len(report.finished)) == (1, 0, 0)
    assert sorted(reported) == ["in clean-up", "of a task"]


def test_leaving_raises_what_went_wrong_unless_something_else_has() -> None:
    """S3.6: then it is noted on that error, and nothing is lost."""

    async def fails_late() -> None:
        try:
            await forever()
        finally:
            raise ValueError("in clean-up")

    async def prepare(scope: handfast.Scope) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        scope.spawn(fails_late())

    def use(then: Callable[[], None]) -> None:
        with BackgroundLoop("unclean") as background:
            background.submit(prepare, background.scope).result()
            background.submit(value).result()
            then()

    def fail() -> None:
        raise OSError("first")

    with pytest.raises(BaseExceptionGroup, match="did not close cleanly"):
        use(lambda: None)
    with pytest.raises(OSError, match="first") as caught:
        use(fail)
    assert any("in clean-up" in note for note in caught.value.__notes__)


def test_a_loop_that_is_stopped_from_inside_ends_in_good_order() -> None:
    """Its tasks are closed in their order; later submits get an error."""
    cleaned: list[str] = []

    async def cleans_up() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            cleaned.append("cleaned")

    async def stop() -> None:
        asyncio.get_running_loop().stop()

    background = BackgroundLoop("stopped")
    waiting = background.submit(cleans_up)
    background.submit(stop).result()
    with pytest.raises(CancelledError):
        waiting.result()
    report = background.close()
    assert cleaned == ["cleaned"]
    assert names(report.cancelled) == [cleans_up.__qualname__]
    assert background.closed


@pytest.mark.parametrize("fatal", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_ends_the_loop_in_good_order(
    fatal: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """#95571: it flies out of the thread, after all has been ended."""
    flown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: flown.append(args.exc_type))

    async def quits() -> None:
        raise fatal

    background = BackgroundLoop("quits")
    waiting = background.submit(forever)
    with pytest.raises(fatal):
        background.submit(quits).result()
    with pytest.raises(CancelledError):
        waiting.result()
    report = background.close()
    assert report.stragglers == ()
    assert background.closed
    assert flown == [fatal]


def test_a_thread_that_cannot_start_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No loop, and no complaint about an owner that never was."""

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        BackgroundLoop("never")


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [((7,), {}, TypeError), (("x",), {"grace": -1}, ValueError)],
)
def test_bad_input_is_refused_at_once(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception]
) -> None:
    """Before there is a loop or a thread."""
    before = threading.active_count()
    with pytest.raises(error):
        BackgroundLoop(*arguments, **options)
    assert threading.active_count() == before


def test_a_negative_time_out_is_refused_at_once() -> None:
    """And nothing has been closed."""
    with BackgroundLoop("open") as background:
        with pytest.raises(ValueError, match="timeout must be"):
            background.close(timeout=-1)
        assert background.submit(value).result() == "value"


def test_it_may_be_made_where_another_loop_runs() -> None:
    """Its scope belongs to its own loop, and has the origin of the BackgroundLoop."""

    async def main() -> str:
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        background = BackgroundLoop("inner")
        try:
            with pytest.raises(
                handfast.errors.WrongLoop, match=f"{Path(__file__).name}:{line} in "
            ):
                background.scope.spawn(value())
            return await asyncio.wrap_future(background.submit(value))
        finally:
            await asyncio.to_thread(background.close)

    assert asyncio.run(main()) == "value"
