"""What threads leave behind, what cannot be controlled, and that a run leaves no trace."""

from __future__ import annotations

import asyncio
import logging
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.thread import BrokenThreadPool
from pathlib import Path
from time import sleep as taken_by_name
from typing import Any

import pytest

import handfast
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.threads import baton, patches
from handfast._explore.simulation.threads import replacements as hooks
from handfast._explore.simulation.threads.locks import Lock
from handfast._explore.simulation.threads.worker import Handle
from tests.explore.simulation.threads.thread_programs import IDEAL, every, once


def _threads(expected: int = 0) -> int:
    """How many threads the process has; those that are on their way out get the time for it."""
    until = time.monotonic() + 5
    while len(sys._current_frames()) > expected > 0 and time.monotonic() < until:
        taken_by_name(0.001)
    return len(sys._current_frames())


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = _threads()
    yield
    assert _threads(before) <= before


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baton, "TURN_TIMEOUT", 0.25)


# --- left over -------------------------------------------------------------------------------


def test_thread_of_the_program_left_running_is_a_verdict() -> None:
    async def program() -> None:
        threading.Thread(target=lambda: time.sleep(5)).start()

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF711"
    assert "sleep at " in verdict.where[0]


def test_two_threads_left_running_are_one_verdict() -> None:
    async def program() -> None:
        for _ in range(2):
            threading.Thread(target=threading.Event().wait, daemon=True).start()

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.message == "2 threads are still running after the program ended"


def test_thread_that_ends_by_itself_is_not_left_over() -> None:
    async def program() -> None:
        threading.Thread(target=str).start()

    assert once(program).verdict is None


def test_idle_threads_of_the_default_executor_are_no_finding() -> None:
    async def program() -> None:
        await asyncio.to_thread(str)

    assert once(program).verdict is None


async def _cancelled(job: Callable[[], object]) -> None:
    task = asyncio.create_task(asyncio.to_thread(job))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])


def test_job_that_ends_after_its_task_was_cancelled_is_waited_for_as_asyncio_run_does() -> None:
    assert once(lambda: _cancelled(lambda: time.sleep(10))).verdict is None


def test_job_of_the_default_executor_that_never_ends_is_a_verdict() -> None:
    verdict = once(lambda: _cancelled(threading.Event().wait)).verdict
    assert verdict is not None
    assert verdict.code == "HF711"


def test_job_of_the_default_executor_that_polls_forever_is_a_verdict() -> None:
    def polls() -> None:
        while True:
            time.sleep(1)

    verdict = once(lambda: _cancelled(polls)).verdict
    assert verdict is not None
    assert verdict.code == "HF711"


def test_executor_of_ones_own_that_is_not_shut_down_is_a_verdict() -> None:
    async def program() -> None:
        await asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), str)

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF712"
    assert Path(__file__).name in verdict.where[0]


def test_executor_from_before_the_run_may_stay_open() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="older") as pool:

        async def program() -> None:
            loop = asyncio.get_running_loop()
            name = await loop.run_in_executor(pool, lambda: threading.current_thread().name)
            assert name == "older_0"

        assert once(program).verdict is None
        assert pool.submit(lambda: 1).result() == 1


def test_job_that_runs_on_after_shutdown_without_waiting_is_a_verdict() -> None:
    async def program() -> None:
        pool = ThreadPoolExecutor(1)
        pool.submit(time.sleep, 5)
        pool.shutdown(wait=False)

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF711"


def test_shutdown_cancels_what_has_not_begun() -> None:
    async def program(log: list[str]) -> None:
        pool = ThreadPoolExecutor(1)
        jobs: list[Future[Any]] = [pool.submit(log.append, name) for name in "ab"]
        jobs[0].result()
        pool.shutdown(cancel_futures=True)
        log.append(" ended" if all(job.done() for job in jobs) else " not ended")

    assert every(program) == {"ab ended", "a ended"}


def test_shutdown_ends_the_threads_that_have_nothing_to_do() -> None:
    async def program() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(str).result()
            (thread,) = pool._threads
            assert thread.is_alive()
        assert not thread.is_alive()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(str)

    assert once(program).verdict is None


def test_unused_executor_is_shut_down_as_ever() -> None:
    async def program() -> None:
        ThreadPoolExecutor(1).shutdown()

    assert once(program).verdict is None


def test_failing_initializer_breaks_the_pool(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1, "concurrent.futures")

    async def program() -> None:
        with ThreadPoolExecutor(1, initializer=lambda: 1 / 0) as pool:
            jobs = [pool.submit(str) for _ in range(2)]
            for job in jobs:
                with pytest.raises(BrokenThreadPool):
                    job.result()
            with pytest.raises(BrokenThreadPool):
                pool.submit(str)

    assert once(program).verdict is None


def test_initializer_runs_once_in_each_thread() -> None:
    async def program(log: list[str]) -> None:
        with ThreadPoolExecutor(1, initializer=log.append, initargs=("ready ",)) as pool:
            for name in "ab":
                pool.submit(log.append, name).result()

    assert every(program) == {"ready ab"}


def test_initializer_is_ended_where_it_waits() -> None:
    async def program() -> None:
        ThreadPoolExecutor(1, initializer=lambda: time.sleep(1000)).submit(str)
        await asyncio.sleep(1)

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF711"


# --- errors ------------------------------------------------------------------------------------


def test_uncaught_error_in_a_thread_is_a_verdict() -> None:
    async def program() -> None:
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    verdict = once(program).verdict
    assert verdict is not None
    assert (verdict.code, verdict.error_type) == ("HF604", "ZeroDivisionError")


def test_hook_of_the_program_handles_the_errors_of_its_threads() -> None:
    async def program(log: list[str]) -> None:
        before = threading.excepthook
        threading.excepthook = lambda args: log.append(args.exc_type.__name__)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        threading.excepthook = before

    assert every(program) == {"ZeroDivisionError"}


def test_system_exit_ends_a_thread_without_a_report() -> None:
    async def program() -> None:
        thread = threading.Thread(target=sys.exit)
        thread.start()
        thread.join()

    assert once(program).verdict is None


def test_thread_is_started_once_and_only_if_made() -> None:
    class Unmade(threading.Thread):
        def __init__(self) -> None:
            """Does not call the one above."""

    async def program() -> None:
        thread = threading.Thread(target=str)
        thread.start()
        with pytest.raises(RuntimeError, match="only be started once"):
            thread.start()
        thread.join()
        assert thread not in threading.enumerate()
        with pytest.raises(RuntimeError, match="not called"):
            Unmade.start(object.__new__(Unmade))

    Unmade._initialized = False  # type: ignore[attr-defined]
    assert once(program).verdict is None


# --- not controlled ----------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
def test_thread_in_an_uncontrolled_wait_is_named() -> None:
    older = threading.Lock()

    async def program() -> None:
        def body() -> None:
            with older:
                pass

        thread = threading.Thread(target=body)
        try:
            with older:
                thread.start()
                await asyncio.sleep(1)
        finally:
            thread.join()

    with pytest.raises(
        Uncontrolled, match=rf"thread 1 \(.*body\) does .*{Path(__file__).name}:\d+ in "
    ):
        once(program)


@pytest.mark.usefixtures("impatient")
def test_loop_in_an_uncontrolled_wait_does_not_hang_the_run() -> None:
    older = threading.Lock()

    async def program() -> None:
        def body() -> None:
            with older:
                time.sleep(1)

        threading.Thread(target=threading.Event().wait).start()
        threading.Thread(target=body).start()
        await asyncio.sleep(0.5)
        with older:
            await asyncio.sleep(0)

    with pytest.raises(Uncontrolled, match="what the thread of the loop does is not controlled"):
        once(program)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("where", ["thread", "loop"])
def test_a_thread_in_a_debugger_may_wait_as_long_as_it_likes(where: str) -> None:
    stops: dict[str, Any] = {"__name__": "pdb", "select": select.select}
    exec("def stop():\n    select([], [], [], 0.6)\n    return 'looked at'", stops)

    async def program() -> None:
        threading.Thread(target=time.sleep, args=(1,)).start()
        await asyncio.sleep(0.5)
        if where == "thread":
            assert await asyncio.to_thread(stops["stop"]) == "looked at"
        else:
            assert stops["stop"]() == "looked at"
        await asyncio.sleep(1)

    assert once(program).verdict is None


def test_threads_that_never_rest_do_not_keep_the_run_from_ending() -> None:
    async def program() -> None:
        mine, yours = threading.Semaphore(1), threading.Semaphore(0)

        def plays(mine: threading.Semaphore, yours: threading.Semaphore) -> None:
            while True:
                mine.acquire()
                yours.release()

        threading.Thread(target=plays, args=(mine, yours)).start()
        threading.Thread(target=plays, args=(yours, mine)).start()

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF711"


def test_interrupt_while_a_thread_has_its_turn_ends_the_run() -> None:
    async def program() -> None:
        def interrupts() -> None:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0)

        await asyncio.to_thread(interrupts)

    with pytest.raises(KeyboardInterrupt):
        once(program)


def test_call_from_a_thread_of_someone_else_is_not_controlled() -> None:
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stranger = threading.Thread(target=lambda: requests.get()())
    stranger.start()

    async def program() -> None:
        loop = asyncio.get_running_loop()
        requests.put(lambda: loop.call_soon_threadsafe(str))
        stranger.join()

    with pytest.raises(Uncontrolled, match=r"loop\.call_soon_threadsafe is not controlled"):
        once(program)


def test_lock_released_by_a_thread_of_someone_else_is_not_controlled() -> None:
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stranger = threading.Thread(target=lambda: requests.get()())
    stranger.start()

    async def program() -> None:
        lock = threading.Lock()
        lock.acquire()
        thread = threading.Thread(target=lock.acquire)
        thread.start()
        time.sleep(1)
        requests.put(lock.release)
        stranger.join()
        thread.join()

    with pytest.raises(Uncontrolled, match="a lock of the program was released is not controlled"):
        once(program)


def test_process_pool_is_refused_by_name() -> None:
    async def program() -> None:
        with ProcessPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, str)

    with pytest.raises(Uncontrolled, match=r"ProcessPoolExecutor is not controlled"):
        once(program)


def test_process_pool_from_outside_is_refused_by_name() -> None:
    async def program() -> None:
        await asyncio.get_running_loop().run_in_executor(pool, str)

    with (
        ProcessPoolExecutor(1) as pool,
        pytest.raises(Uncontrolled, match=r"ProcessPoolExecutor is not controlled"),
    ):
        once(program)


def test_process_pool_can_be_created_outside_a_run_during_one() -> None:
    with patches.patched(), ProcessPoolExecutor(1):
        pass


def test_process_pool_is_left_alone_outside_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hooks.REAL, "submit_to_processes", lambda *args: args)
    assert hooks.submit_to_processes(None, str, 1) == (None, str, 1)


def test_process_pool_that_is_not_loaded_needs_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = vars(ProcessPoolExecutor)["submit"]
    monkeypatch.delitem(sys.modules, "concurrent.futures.process")
    with patches.patched():
        assert vars(ProcessPoolExecutor)["submit"] is real


def test_process_pool_that_was_loaded_late_is_refused_too() -> None:
    class _ExecutorManagerThread(threading.Thread):
        """As the one that a process pool starts."""

    async def program() -> None:
        _ExecutorManagerThread().start()

    with pytest.raises(Uncontrolled, match=r"ProcessPoolExecutor is not controlled"):
        once(program)


def test_background_loop_is_refused_with_the_advice() -> None:
    async def program() -> None:
        with handfast.BackgroundLoop("other"):
            pass

    with pytest.raises(
        Uncontrolled, match=r"handfast\.BackgroundLoop is not controlled.*Scope\.submit"
    ):
        once(program)


def test_second_loop_in_a_thread_is_refused() -> None:
    async def program() -> None:
        def body() -> None:
            loop = asyncio.new_event_loop()
            try:
                loop.run_forever()
            finally:
                loop.close()

        await asyncio.to_thread(body)

    with pytest.raises(Uncontrolled, match=r"a second event loop in thread 1 \(asyncio\)"):
        once(program)


# --- no trace ----------------------------------------------------------------------------------


def _names() -> list[Any]:
    places: list[tuple[Any, str]] = [
        (time, "sleep"), (threading, "Lock"), (threading, "_allocate_lock"), (threading, "_CRLock"),
        (threading, "_time"), (queue, "time"), (queue, "SimpleQueue"), (threading.Thread, "start"),
        (ThreadPoolExecutor, "submit"), (ThreadPoolExecutor, "shutdown"),
        (ProcessPoolExecutor, "submit"), (asyncio.BaseEventLoop, "run_forever"),
        (sys.modules[__name__], "taken_by_name"),
    ]  # fmt: skip
    return [vars(place)[name] for place, name in places]


@pytest.mark.parametrize("how", ["ends", "fails", "deadlocks", "is refused", "livelocks"])
def test_everything_is_put_back_and_every_thread_ended(how: str) -> None:
    during: list[Any] = []

    async def program() -> None:
        during.extend(_names())
        threading.Thread(target=threading.Event().wait).start()
        pool = ThreadPoolExecutor(1)
        pool.submit(taken_by_name, 1000)
        await asyncio.sleep(0)
        if how == "fails":
            raise ValueError
        if how == "deadlocks":
            threading.Event().wait()
        if how == "is refused":
            ProcessPoolExecutor(1).submit(str)
        while how == "livelocks":
            await asyncio.sleep(0)

    before = _names()
    try:
        once(program, Settings(step_limit=200))
    except Uncontrolled:
        assert how == "is refused"
    assert _names() == before
    assert all(one is not other for one, other in zip(during, before, strict=True))


def test_many_runs_that_are_cut_off_leave_no_threads() -> None:
    async def program() -> None:
        await asyncio.to_thread(threading.Event().wait)

    before = _threads()
    with patches.patched():
        for _ in range(100):
            run(program, Plan(), IDEAL)
    assert _threads(before) <= before


def test_thread_is_ended_where_it_waits_and_cleans_up() -> None:
    said: list[str] = []

    async def program() -> None:
        loop = asyncio.get_running_loop()

        def body() -> None:
            lock = threading.Lock()
            lock.acquire()
            for wait in (
                lambda: time.sleep(1000),
                lambda: loop.call_soon_threadsafe(str),
                lock.acquire,
            ):
                try:
                    wait()
                except BaseException as error:
                    said.append(type(error).__name__)
            lock.release()
            with lock:
                said.append("cleared up")

        threading.Thread(target=body).start()
        await asyncio.sleep(1)

    once(program)
    assert said == ["RunEnded", "RunEnded", "RunEnded", "cleared up"]


def test_thread_that_will_not_end_is_left_standing() -> None:
    kept: list[Any] = []
    stop: list[bool] = []

    async def program() -> None:
        def body() -> None:
            while not stop:
                try:
                    time.sleep(1000)
                except BaseException:
                    pass

        threading.Thread(target=body).start()
        loop: Any = asyncio.get_running_loop()
        kept.extend(loop._baton.workers)
        await asyncio.sleep(1)

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF711"
    stop.append(True)  # only a test can let it go
    kept[0].gate.release()
    kept[0].thread.join()


def test_threads_of_others_are_left_alone_during_a_run() -> None:
    requests: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look() -> list[Any]:
        made = [threading.Lock(), threading.RLock(), queue.SimpleQueue[int]()]
        kinds = [type(each) for each in made]
        time.sleep(0)
        queue.Queue[int](1).put(1, timeout=1)
        with threading.Condition():
            pass
        assert not threading.Event().wait(0.001)
        thread = threading.Thread(target=str)
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(str).result()
        loop = asyncio.new_event_loop()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        return kinds

    real = look()

    def asks_and_looks() -> None:
        requests.get()
        answers.put(look())

    stranger = threading.Thread(target=asks_and_looks)
    stranger.start()

    async def program() -> None:
        requests.put(str)
        assert answers.get(timeout=5) == real

    assert once(program).verdict is None
    stranger.join()


def test_objects_of_a_run_work_after_it() -> None:
    kept: list[Any] = []

    async def program() -> None:
        kept.extend([threading.Lock(), queue.Queue(), threading.Event(), queue.SimpleQueue()])
        thread = threading.Thread(target=str)
        thread.start()
        thread.join()
        kept.append(thread)

    once(program)
    lock, things, event, simple, thread = kept
    other = threading.Thread(target=lambda: (lock.acquire(), event.set(), things.put(simple.get())))
    with lock:
        other.start()
        simple.put("thing")
    assert event.wait(5)
    assert things.get(timeout=5) == "thing"
    other.join()
    assert not thread.is_alive()
    thread.join()


def test_name_that_was_replaced_before_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)

    async def program() -> None:
        time.sleep(1)

    once(program)
    assert slept == [1]


def test_run_inside_a_run_has_its_own_threads() -> None:
    async def inner() -> None:
        await asyncio.to_thread(str)

    async def outer() -> None:
        assert run(inner, Plan(), IDEAL).verdict is None
        await asyncio.to_thread(str)

    assert once(outer).verdict is None


def test_loop_that_was_never_run_closes() -> None:
    loop = ExploredLoop()
    loop.call_soon_threadsafe(str)
    loop.close()
    assert loop.is_closed()


def test_handle_of_a_thread_knows_its_end() -> None:
    finished = Lock()
    handle = Handle(finished, 1)
    finished.take()
    assert not handle.is_done()
    handle.join(0)
    finished.release()
    handle.join()
    assert handle.is_done()
