"""Which orders the explorer lists for threads: exactly those that are known by hand."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from handfast._explore.search.cancel_points import CancelPointObserver
from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.search.run import run
from handfast._explorer_internals import chain_copies_at_once
from handfast.explore import Uncontrolled, explore
from tests.explore.all_schedules import plain
from tests.explore.simulation.threads.thread_programs import every, once


async def _two_jobs(log: list[str]) -> None:
    async def one(number: int) -> None:
        await asyncio.to_thread(log.append, f"s{number}")
        log.append(f"r{number}")

    await asyncio.gather(one(1), one(2))


def test_start_of_a_job_and_hand_over_of_its_result_are_separate_events() -> None:
    # Every order of two starts and two results in which each start is before its own result.
    assert every(_two_jobs) == {
        "s1s2r1r2", "s1s2r2r1", "s2s1r1r2", "s2s1r2r1", "s1r1s2r2", "s2r2s1r1"
    }  # fmt: skip


def test_in_the_plain_order_a_result_comes_right_after_its_start() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(log.append, "soon ")
        await asyncio.to_thread(log.append, "job ")
        log.append("result")

    assert plain(program) == ("soon ", "job ", "result")


def test_results_of_one_worker_come_in_order() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:

            async def one(number: int) -> None:
                await loop.run_in_executor(pool, log.append, f"s{number}")
                log.append(f"r{number}")

            await asyncio.gather(one(1), one(2))

    # The second begins after the first has ended: its result may still be on its way to its task.
    # If it is over before it is awaited, its task goes on before the first one's.
    overtakes = {"s1s2r2r1"} if chain_copies_at_once() else set()
    assert every(program) == {"s1r1s2r2", "s1s2r1r2"} | overtakes


async def _quick_job(log: list[str]) -> None:
    async def other() -> None:
        log.append("other ")

    task = asyncio.create_task(other())
    await asyncio.to_thread(log.append, "job ")
    log.append("result ")
    await task


def test_a_job_that_is_over_before_it_is_awaited_does_not_yield_where_asyncio_copies_it() -> None:
    # 3 of 3,000 runs on a real 3.14 loop; never up to 3.13.0.
    at_once = {"job result other "} if chain_copies_at_once() else set()
    assert every(_quick_job) == {"other job result ", "job other result "} | at_once


@pytest.mark.skipif(sys.version_info < (3, 14), reason="new in Python 3.14")
def test_an_executor_of_interpreters_is_refused_by_name() -> None:
    async def program() -> None:
        executors: Any = concurrent.futures
        with executors.InterpreterPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, int)

    with pytest.raises(Uncontrolled, match=r"InterpreterPoolExecutor\.submit is not controlled"):
        once(program)


def _add(count: list[int]) -> None:
    value = count[0]
    time.sleep(0)
    count[0] = value + 1


def test_update_that_is_split_by_a_hand_over_is_lost_in_some_schedule() -> None:
    async def program(log: list[str]) -> None:
        count = [0]
        threads = [threading.Thread(target=_add, args=(count,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.append(str(count[0]))

    assert every(program) == {"1", "2"}


def test_update_in_one_piece_is_never_lost() -> None:
    async def program(log: list[str]) -> None:
        count = [0]
        lock = threading.Lock()

        def add() -> None:
            with lock:
                _add(count)

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.append(str(count[0]))

    assert every(program) == {"2"}


def test_after_a_hand_over_the_thread_or_the_loop_continues_first() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def body() -> None:
            loop.call_soon_threadsafe(log.append, "loop ")
            log.append("thread ")
            loop.call_soon_threadsafe(done.set)

        thread = threading.Thread(target=body)
        thread.start()
        await done.wait()
        thread.join()

    assert every(program) == {"loop thread ", "thread loop "}


def test_hand_overs_of_one_thread_keep_their_order() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def body() -> None:
            loop.call_soon_threadsafe(log.append, "1")
            loop.call_soon_threadsafe(done.set_result, None)

        thread = threading.Thread(target=body)
        thread.start()
        await done
        log.append("2")
        thread.join()

    assert every(program) == {"12"}


def test_thread_that_wakes_another_may_come_after_it() -> None:
    async def program(log: list[str]) -> None:
        event = threading.Event()

        def waits() -> None:
            event.wait()
            log.append("woken ")

        def wakes() -> None:
            event.set()
            log.append("set ")

        threads = [threading.Thread(target=each) for each in (waits, wakes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert every(program) == {"woken set ", "set woken "}


def test_cancel_between_result_and_resume_loses_the_result() -> None:
    async def program(log: list[str]) -> None:
        async def job() -> None:
            try:
                log.append(await asyncio.to_thread(lambda: "result"))
            except asyncio.CancelledError:
                log.append("lost")
                raise

        task = asyncio.create_task(job())
        await asyncio.wait([task])

    log: list[str] = []
    seen = {}
    for instant in range(once(lambda: program(log)).instants):
        log.clear()
        once(lambda: program(log), Settings(cancel="tasks"), cancels=(Cancel(instant, 1),))
        seen[instant] = "".join(log)
    words = [seen[instant] for instant in sorted(seen)]
    # Before its first step, then while it waits and in the window, then too late.
    assert [word for n, word in enumerate(words) if word != words[n - 1]] == ["", "lost", "result"]


def test_job_continues_when_the_task_that_waits_for_it_is_cancelled() -> None:
    async def program(log: list[str]) -> None:
        def work() -> None:
            log.append("begun ")
            time.sleep(1)
            log.append("done ")

        task = asyncio.create_task(asyncio.to_thread(work))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])
        log.append("cancelled ")
        await asyncio.sleep(1)

    assert plain(program) == ("begun ", "cancelled ", "done ")


def test_job_that_was_cancelled_before_its_start_never_runs() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            first = loop.run_in_executor(pool, time.sleep, 1)
            second = loop.run_in_executor(pool, log.append, "ran")
            await asyncio.sleep(0.5)
            second.cancel()
            await first

    assert plain(program) == ()


def test_job_runs_in_another_thread_with_the_context_that_the_stock_loop_gives_it() -> None:
    variable = contextvars.ContextVar("variable", default="default ")

    async def program(log: list[str]) -> None:
        variable.set("copied ")
        log.append(await asyncio.to_thread(variable.get))
        loop = asyncio.get_running_loop()
        log.append(await loop.run_in_executor(None, variable.get))
        assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
        name = await asyncio.to_thread(lambda: threading.current_thread().name)
        log.append(name)

    assert plain(program) == ("copied ", "default ", "asyncio_0")


def test_pool_has_no_more_workers_than_the_real_one() -> None:
    async def program(log: list[str]) -> None:
        def work(number: int) -> None:
            time.sleep(1)
            log.append(str(number))

        with ThreadPoolExecutor(2) as pool:
            for number in range(4):
                pool.submit(work, number)
            time.sleep(1.5)
            log.append("half ")

    assert plain(program) == ("0", "1", "half ", "2", "3")


def test_default_executor_of_ones_own_is_used() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="mine"))
        log.append(await asyncio.to_thread(lambda: threading.current_thread().name))
        await loop.shutdown_default_executor()
        with pytest.raises(RuntimeError, match="shutdown"):
            await asyncio.to_thread(print)

    assert plain(program) == ("mine_0",)


def test_callback_of_a_concurrent_future_runs_before_its_thread_continues() -> None:
    async def program(log: list[str]) -> None:
        with ThreadPoolExecutor(1) as pool:
            future: Future[Any] = pool.submit(lambda: time.sleep(1))
            future.add_done_callback(lambda _: log.append("called "))
            await asyncio.wrap_future(future)
            log.append("awaited")

    assert plain(program) == ("called ", "awaited")


def test_fault_executor_fails_the_job_or_refuses_it_only_if_enabled() -> None:
    async def program(log: list[str]) -> None:
        try:
            log.append(await asyncio.to_thread(lambda: "done"))
        except (OSError, RuntimeError) as error:
            log.append(str(error))

    assert every(program) == {"done"}
    assert every(program, Settings(stall=0.0, faults=("executor",))) == {
        "done",
        "injected",
        "cannot schedule new futures after shutdown",
    }


class _Says(CancelPointObserver):
    """An observer that keeps what was said about each departure."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def chose(self, instant: int, kind: str, options: int, value: int, label: str) -> None:
        self.said.append(label)


def test_departure_names_the_thread_by_what_is_the_same_in_every_run() -> None:
    async def program() -> None:
        lock = threading.Lock()

        def body() -> None:
            with lock:
                pass

        with ThreadPoolExecutor() as pool:
            pool.submit(body).result()

    looks = _Says()
    first = int(chain_copies_at_once())  # after the choice whether the job is over at once
    run(program, Plan(choices=((first, 1),)), Settings(stall=0.0), observer=looks)
    assert looks.said == ["another thread runs before thread 1 (executor 1) continues"]


class _LikeAMock:
    """Each attribute is another object of the same kind."""

    depth = 0

    def __getattr__(self, name: str) -> _LikeAMock:
        if name.startswith("__"):
            raise AttributeError(name)
        inner = _LikeAMock()
        inner.depth = self.depth + 1
        assert inner.depth < 9
        return inner

    def __call__(self) -> None:
        """Do nothing."""


def test_a_mock_is_a_job_and_a_callback_like_any_other() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, _LikeAMock())
        loop.call_soon(_LikeAMock())
        await asyncio.sleep(0)
        raise KeyError

    found = explore(program, schedules=5).counterexample
    assert found is not None
    assert type(found.error) is KeyError
    assert "_LikeAMock" in found.timeline()
