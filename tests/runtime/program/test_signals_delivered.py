"""What `handfast.run` makes of a signal, at each moment at which one can come.

The signals are real, sent to this very process, at a moment that the test chooses.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import handfast
from handfast._runtime.program.thread_pool import ThreadPool
from tests.runtime.wrapped_loop import Watched
from tests.support.stepping import SteppingLoop, new_loop

DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As a fresh interpreter has them, and the same again after each run."""
    before = {number: signal.signal(number, handler) for number, handler in DEFAULTS.items()}
    yield
    after = {number: signal.signal(number, before[number]) for number in DEFAULTS}
    assert after == DEFAULTS


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


def outcome(main: Callable[[], Any], **options: Any) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        handfast.run(main, **options)
    return caught.value


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, "KeyboardInterrupt()"), (signal.SIGTERM, "SystemExit(143)")],
)
def test_a_signal_cancels_main_once(number: int, expected: str, kind: str) -> None:
    """However many come before the loop gets to hear of it, up to the second, which strikes."""
    cancels: list[str] = []

    async def main() -> None:
        signal.raise_signal(number)
        try:
            await forever()
        except asyncio.CancelledError:
            cancels.append("cancelled")
            raise

    assert repr(outcome(main, loop_factory=lambda: new_loop(kind))) == expected
    assert cancels == ["cancelled"]


def test_a_signal_in_the_very_first_turn_is_not_lost() -> None:
    """Main has ended before the loop comes to hear of it."""

    async def main() -> None:
        pass

    def loop_factory() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.call_soon(signal.raise_signal, signal.SIGTERM)
        return loop

    assert repr(outcome(main, loop_factory=loop_factory)) == "SystemExit(143)"


def test_a_signal_that_does_not_wake_the_loop_by_itself_is_heard() -> None:
    """It came a moment before the loop went to sleep; or, as here, another thread received it."""
    selector = Watched()

    def receive() -> None:
        selector.asleep.wait()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    async def main() -> None:
        threading.Thread(target=receive, daemon=True).start()
        await forever()

    error = outcome(main, loop_factory=lambda: asyncio.SelectorEventLoop(selector))
    assert repr(error) == "SystemExit(143)"


def test_a_signal_that_comes_before_our_handler_is_in_place_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop has one of its own there for a moment, which does nothing."""
    install = signal.signal
    once = [signal.SIGTERM]

    def interrupted(number: int, handler: Any) -> Any:
        if getattr(handler, "__name__", "") == "_on_signal" and number in once:
            once.clear()
            signal.raise_signal(number)
        return install(number, handler)

    monkeypatch.setattr("handfast._runtime.program.signals.signal.signal", interrupted)
    assert repr(outcome(forever)) == "SystemExit(143)"
    monkeypatch.undo()


def test_an_error_in_the_clean_up_after_a_signal_is_raised() -> None:
    """S3.6: nothing is turned into something else."""

    async def main() -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await forever()
        finally:
            raise ValueError("in clean-up")

    assert repr(outcome(main)) == "ValueError('in clean-up')"


@pytest.mark.parametrize("failing", [False, True])
def test_a_signal_after_main_has_ended_is_not_lost(failing: bool) -> None:
    """The program got a signal; the outcome of main is the cause."""

    async def leftover() -> None:
        try:
            await forever()
        finally:
            signal.raise_signal(signal.SIGINT)

    async def main() -> None:
        leave(leftover())
        await asyncio.sleep(0)
        if failing:
            raise ValueError("before that")

    error = outcome(main)
    assert repr(error) == "KeyboardInterrupt()"
    assert repr(error.__cause__) == ("ValueError('before that')" if failing else "None")


def test_a_first_signal_cuts_the_grace_of_leftovers() -> None:
    """In virtual time: it comes in the third of a thousand seconds."""
    loop = SteppingLoop()

    async def main() -> None:
        leave(forever())
        loop.call_later(3, signal.raise_signal, signal.SIGTERM)

    assert repr(outcome(main, grace=1000, timeout=2000, loop_factory=lambda: loop)) == (
        "SystemExit(143)"
    )
    assert loop.time() == 3


def test_the_deadline_counts_from_the_signal(capsys: pytest.CaptureFixture[str]) -> None:
    """In virtual time: main and what it left share one span of seven seconds."""
    loop = SteppingLoop()

    async def stubborn() -> None:
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                pass

    async def main() -> None:
        leave(stubborn(), name="left by main")
        loop.call_later(3, signal.raise_signal, signal.SIGTERM)
        await stubborn()

    assert repr(outcome(main, timeout=7, loop_factory=lambda: loop)) == "SystemExit(143)"
    assert loop.time() == 10
    errors = capsys.readouterr().err
    assert "'left by main'" in errors
    assert "'main'" in errors


def test_a_second_signal_does_not_wait_for_the_deadline() -> None:
    """In virtual time; those who end at once still may."""
    loop = SteppingLoop()
    ended: list[str] = []

    async def leftover() -> None:
        try:
            await forever()
        finally:
            ended.append("leftover")

    async def main() -> None:
        leave(leftover())
        loop.call_later(3, signal.raise_signal, signal.SIGTERM)
        try:
            await forever()
        finally:
            loop.call_later(3, signal.raise_signal, signal.SIGTERM)
            await forever()

    assert repr(outcome(main, timeout=1000, loop_factory=lambda: loop)) == "SystemExit(143)"
    assert loop.time() == 6
    assert ended == ["leftover"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, "KeyboardInterrupt()"), (signal.SIGTERM, "SystemExit(143)")],
)
def test_a_second_signal_strikes_where_the_loop_is_blocked(number: int, expected: str) -> None:
    """The loop has had no chance to hear the first."""
    delivered: list[str] = []

    async def main() -> None:
        signal.raise_signal(number)
        try:
            signal.raise_signal(number)
        except BaseException as error:
            delivered.append(repr(error))
            raise

    assert repr(outcome(main)) == expected
    assert delivered == [expected]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(signal.SIGINT, "KeyboardInterrupt()"), (signal.SIGTERM, "SystemExit(143)")],
)
def test_code_that_blocks_the_loop_is_broken_at_the_deadline(number: int, expected: str) -> None:
    """The loop cannot hear the signal: it is sent once more, and strikes there."""

    async def main() -> None:
        signal.raise_signal(number)
        threading.Event().wait()

    assert repr(outcome(main, timeout=0.01)) == expected


def test_a_loop_that_is_blocked_after_the_first_signal_is_broken_at_the_deadline() -> None:
    """The loop has noticed that one; then the clean-up blocks it."""

    async def main() -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await forever()
        finally:
            threading.Event().wait()

    assert repr(outcome(main, timeout=0.01)) == "SystemExit(143)"


def test_a_third_signal_strikes_where_the_loop_is_blocked_after_the_first() -> None:
    """The second is for the loop, which cannot hear it."""

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await forever()
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            threading.Event().wait()

    assert repr(outcome(main, timeout=1000)) == "KeyboardInterrupt()"


def test_a_signal_that_comes_in_code_of_asyncio_strikes_when_that_has_ended() -> None:
    """There it could lose a callback of the loop (#95571). It comes again, from a thread."""
    delivered: list[str] = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        inside: Any = asyncio.sleep(0)
        handler: Any = signal.getsignal(signal.SIGINT)
        handler(signal.SIGINT, inside.cr_frame)
        inside.close()
        try:
            threading.Event().wait()
        except BaseException as error:
            delivered.append(repr(error))
            raise

    assert repr(outcome(main, timeout=1000)) == "KeyboardInterrupt()"
    assert delivered == ["KeyboardInterrupt()"]


def test_a_signal_strikes_where_handfast_waits_for_another_thread() -> None:
    """It is the program that blocks its loop there."""

    async def main() -> None:
        with handfast.BackgroundLoop("other") as background:
            signal.raise_signal(signal.SIGINT)
            background.submit(forever).result()

    assert repr(outcome(main, timeout=0.01)) == "KeyboardInterrupt()"


def test_the_clean_up_of_interrupted_code_is_not_interrupted_at_once() -> None:
    """A second exception inside `with lock` would leave the lock taken."""
    ended: list[str] = []

    async def main() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            ended.append("clean-up")

    assert repr(outcome(main, timeout=1000)) == "KeyboardInterrupt()"
    assert ended == ["clean-up"]


def test_the_end_of_executor_threads_hears_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4.5: the loop no longer runs then, but a signal is not lost, and it does not wait."""
    gate = threading.Event()
    threads: list[threading.Thread] = []
    shutdown = ThreadPool.shutdown

    def interrupted(self: ThreadPool, wait: bool = True, *, cancel_futures: bool = False) -> None:
        shutdown(self, wait, cancel_futures=cancel_futures)
        if cancel_futures:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(ThreadPool, "shutdown", interrupted)

    def work() -> None:
        threads.append(threading.current_thread())
        gate.wait()

    async def main() -> None:
        asyncio.get_running_loop().run_in_executor(None, work)
        while not threads:
            await asyncio.sleep(0)

    try:
        assert repr(outcome(main, timeout=1000)) == "SystemExit(143)"
        assert threads[0].is_alive()
    finally:
        gate.set()
        threads[0].join()


def test_a_handler_that_the_program_has_set_is_left_alone() -> None:
    """Before the run, and in the middle of it."""
    heard: list[int] = []

    def mine(number: int, frame: object) -> None:
        heard.append(number)

    async def main() -> int:
        signal.raise_signal(signal.SIGTERM)
        signal.signal(signal.SIGINT, mine)
        signal.raise_signal(signal.SIGINT)
        return 42

    signal.signal(signal.SIGTERM, mine)
    assert handfast.run(main) == 42
    assert heard == [signal.SIGTERM, signal.SIGINT]
    assert signal.signal(signal.SIGTERM, signal.SIG_DFL) is mine
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is mine


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """A shell starts programs in the background with SIGINT ignored."""

    async def main() -> int:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return 42

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert handfast.run(main) == 42
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN


def test_another_thread_touches_no_handler() -> None:
    """Python lets nobody but the main thread have handlers."""
    seen: list[Any] = []

    async def main() -> None:
        seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=lambda: handfast.run(main))
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
