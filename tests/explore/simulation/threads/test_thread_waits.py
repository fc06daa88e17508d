"""A thread that waits gives its turn back, whatever it waits for; and who waits for ever is named."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from typing import Any

import pytest

from handfast._explore.loop.virtual_clock import virtual_clocks
from handfast._explore.search.plan import Settings
from tests.explore.all_schedules import plain
from tests.explore.simulation.threads.thread_programs import IDEAL, every, once


def _together(*bodies: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_event_wakes_every_waiting_thread() -> None:
    async def program(log: list[str]) -> None:
        event = threading.Event()

        def waits() -> None:
            event.wait()
            log.append("woken")

        _together(waits, event.set)

    assert every(program) == {"woken"}


def test_barrier_semaphore_and_condition_let_threads_meet() -> None:
    async def program(log: list[str]) -> None:
        barrier, semaphore = threading.Barrier(2), threading.Semaphore(0)
        condition, ready = threading.Condition(), []

        def first() -> None:
            barrier.wait()
            semaphore.acquire()
            with condition:
                ready.append(True)
                condition.notify()

        def second() -> None:
            barrier.wait()
            semaphore.release()
            with condition:
                condition.wait_for(lambda: bool(ready))
            log.append("met")

        _together(first, second)

    assert every(program) == {"met"}


@pytest.mark.parametrize("make", [queue.Queue, queue.SimpleQueue, queue.LifoQueue])
def test_queue_hands_over_what_was_put(make: Callable[[], queue.Queue[str]]) -> None:
    async def program(log: list[str]) -> None:
        # Looked up when it is called, as a program does it.
        things: queue.Queue[str] = getattr(queue, make.__name__)()
        _together(lambda: log.append(things.get()), lambda: things.put("thing"))

    assert every(program) == {"thing"}


def test_bounded_queue_makes_the_one_who_puts_wait() -> None:
    async def program(log: list[str]) -> None:
        things: queue.Queue[str] = queue.Queue(1)

        def puts() -> None:
            for each in "abc":
                things.put(each)

        _together(puts, lambda: log.extend(things.get() for _ in range(3)))

    assert every(program) == {"abc"}


def test_reentrant_lock_keeps_others_out_and_its_owner_in() -> None:
    async def program(log: list[str]) -> None:
        lock = threading.RLock()

        def body(name: str) -> None:
            with lock, lock:
                log.append(name)
                time.sleep(0)
                log.append(name)

        _together(lambda: body("a"), lambda: body("b"))

    assert every(program) == {"aabb", "bbaa"}


def test_lock_answers_as_a_real_one_does() -> None:
    async def program(log: list[str]) -> None:
        lock = threading.Lock()
        assert lock.acquire()
        assert lock.locked()
        assert "locked" in repr(lock)
        kind: Any = threading.Lock  # a function, up to Python 3.12
        assert isinstance(lock, kind)
        assert not lock.acquire(False)
        assert not lock.acquire(timeout=2)
        with pytest.raises(ValueError, match="non-blocking"):
            lock.acquire(False, 1)
        with pytest.raises(ValueError, match="non-negative"):
            lock.acquire(True, -2)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()

    assert plain(program) == ()


def test_sleep_and_timeouts_of_threads_take_virtual_time() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def body() -> float:
            time.sleep(100)
            with pytest.raises(queue.Empty):
                queue.Queue[int]().get(timeout=1000)
            assert not threading.Event().wait(10_000)
            assert time.monotonic() == loop.time()
            return time.monotonic() - began

        log.append(str(await asyncio.to_thread(body)))

    with virtual_clocks():
        assert plain(program) == ("11100.0",)


def test_loop_thread_that_sleeps_moves_the_clock_and_lets_threads_go_on() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def body() -> None:
            time.sleep(1)
            log.append("thread ")

        thread = threading.Thread(target=body)
        thread.start()
        time.sleep(2)
        log.append(str(loop.time() - began))
        thread.join()
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)

    assert plain(program, IDEAL) == ("thread ", "2.0")


def test_timer_thread_and_timer_of_the_loop_fire_by_their_time() -> None:
    async def program(log: list[str]) -> None:
        timer = threading.Timer(1, log.append, ("thread ",))
        timer.start()
        await asyncio.sleep(2)
        log.append("loop")
        timer.join()

    assert every(program) == {"thread loop"}


def test_waiting_for_a_coroutine_in_a_thread_lets_the_loop_run_it() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()
        work = asyncio.sleep(5, "slept")
        ask = asyncio.run_coroutine_threadsafe
        log.append(await asyncio.to_thread(lambda: ask(work, loop).result()))

    assert every(program) == {"slept"}


def test_loop_thread_that_waits_for_a_thread_lets_it_run() -> None:
    async def program(log: list[str]) -> None:
        with ThreadPoolExecutor(2) as pool:
            log.append(pool.submit(lambda: "a").result())
            log.extend(pool.map(str.upper, "bc"))
            futures = [pool.submit(time.sleep, seconds) for seconds in (1, 5)]
            done, pending = wait_for_futures(futures, timeout=2)
            log.append(f" {len(done)} of {len(done) + len(pending)}")

    with virtual_clocks():
        assert plain(program, IDEAL) == ("a", "B", "C", " 1 of 2")


def test_lock_that_one_takes_keeps_the_others_waiting() -> None:
    async def program(log: list[str]) -> None:
        lock = threading.Lock()
        lock.acquire()

        def body(name: str) -> None:
            with lock:
                log.append(name)
                time.sleep(0)
                log.append(name)

        threads = [threading.Thread(target=body, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        time.sleep(1)
        lock.release()
        for thread in threads:
            thread.join()

    assert every(program) == {"aabb", "bbaa"}


def test_wait_that_is_over_for_two_reasons_ends_once() -> None:
    async def program(log: list[str]) -> None:
        loop: Any = asyncio.get_running_loop()
        lock = threading.Lock()
        lock.acquire()

        def body() -> None:
            lock.acquire(timeout=1)
            loop.call_soon_threadsafe(log.append, "handed over ")
            if not (loop._ready or log):
                log.append("went on too early ")

        thread = threading.Thread(target=body)
        thread.start()
        time.sleep(1)  # as long as the thread waits at most
        lock.release()
        thread.join()

    assert every(program) == {"handed over "}


# --- who waits for ever ------------------------------------------------------------------------


def test_loop_that_waits_for_itself_is_a_verdict() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        work = asyncio.sleep(0)
        try:
            asyncio.run_coroutine_threadsafe(work, loop).result()
        finally:
            work.close()

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF423"
    assert verdict.where[0].startswith("the thread of the loop waits in Future.result at ")


def test_deadlock_of_loop_and_thread_says_who_waits_for_what() -> None:
    async def program() -> None:
        lock = threading.Lock()

        def body() -> None:
            with lock:
                pass

        with lock, ThreadPoolExecutor(1) as pool:
            pool.submit(body).result()

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF423"
    assert verdict.where[0].startswith("the thread of the loop waits in Future.result at ")
    assert verdict.where[1].startswith("thread 1 (executor 1) waits in Lock.__enter__ at ")


def test_locks_taken_in_two_orders_are_a_deadlock_in_some_schedule() -> None:
    async def program(log: list[str]) -> None:
        one, two = threading.Lock(), threading.Lock()

        def takes(first: threading.Lock, second: threading.Lock) -> None:
            with first, second:
                pass

        _together(lambda: takes(one, two), lambda: takes(two, one))

    assert every(program) == {"", "HF431"}


def test_locks_of_loop_and_thread_taken_in_two_orders_are_a_deadlock() -> None:
    async def program(log: list[str]) -> None:
        one, two = threading.Lock(), threading.Lock()

        def takes() -> None:
            with two, one:
                pass

        thread = threading.Thread(target=takes)
        thread.start()
        await asyncio.sleep(0)
        with one, two:
            pass
        thread.join()

    assert every(program) == {"", "HF431"}


def test_deadlock_of_tasks_and_threads_names_the_threads() -> None:
    async def program() -> None:
        await asyncio.to_thread(threading.Event().wait)

    verdict = once(program).verdict
    assert verdict is not None
    assert verdict.code == "HF431"
    assert verdict.where[-1] == "thread 1 (asyncio) waits in Event.wait"


def test_threads_that_keep_each_other_busy_are_a_livelock() -> None:
    async def program() -> None:
        def body() -> None:
            while True:
                time.sleep(0)

        await asyncio.to_thread(body)

    verdict = once(program, Settings(step_limit=500)).verdict
    assert verdict is not None
    assert verdict.code == "HF432"


def test_polling_for_something_of_the_loop_comes_to_an_end() -> None:
    async def program(log: list[str]) -> None:
        def body() -> None:
            while not log:
                time.sleep(0)

        thread = threading.Thread(target=body)
        thread.start()
        await asyncio.sleep(0.2)
        log.append("seen")
        thread.join()

    assert plain(program) == ("seen",)
