"""S4.5: work in a thread pool is bounded or named as still running, and nothing of it comes late."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from handfast import BackgroundLoop
from handfast._runtime.program.thread_pool import _MAX_THREADS, ThreadPool


class Pooled:
    """A pool whose loop does nothing, and a gate that holds its calls."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = ThreadPool(self.loop, "pooled")
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)

    def __enter__(self) -> Pooled:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self.pool.shutdown()
        self.loop.close()
        assert not [t for t in threading.enumerate() if t.name.startswith("pooled")]

    def hold(self) -> str:
        self.entered.release()
        self.gate.wait()
        return "let go"

    def submit_held(self, count: int = 1) -> list[Future[str]]:
        """Calls that are at work, and stay there."""
        futures = [self.pool.submit(self.hold) for _ in range(count)]
        for _ in range(min(count, _MAX_THREADS)):
            self.entered.acquire()
        return futures


def test_calls_run_in_threads_that_no_exit_waits_for() -> None:
    """They are daemons; and idle ones are used again."""
    with Pooled() as pooled:
        thread = pooled.pool.submit(threading.current_thread).result()
        assert thread.daemon
        while not pooled.pool._idle._value:  # it has answered, and is about to be idle
            pass
        assert pooled.pool.submit(threading.current_thread).result() is thread
        assert pooled.pool.submit(divmod, 7, 2).result() == (3, 1)
        assert pooled.pool.submit(int, "ff", base=16).result() == 255
        with pytest.raises(ZeroDivisionError):
            pooled.pool.submit(divmod, 7, 0).result()


def test_there_are_no_more_threads_than_a_stock_executor_has() -> None:
    """The others wait for their turn."""
    with Pooled() as pooled:
        futures = pooled.submit_held(_MAX_THREADS + 5)
        assert len(pooled.pool._workers) == _MAX_THREADS
        assert sum(future.running() for future in futures) == _MAX_THREADS
        pooled.gate.set()
        assert {future.result() for future in futures} == {"let go"}


def test_an_end_in_time_is_clean() -> None:
    """Running calls may end; those that wait are cancelled; no new ones are taken."""
    with Pooled() as pooled:
        running = pooled.submit_held(_MAX_THREADS)
        waiting = pooled.pool.submit(pooled.hold)
        ended: list[Any] = []
        ender = threading.Thread(target=lambda: ended.append(pooled.pool.end(1000)))
        ender.start()
        while not pooled.pool._over:
            pass
        with pytest.raises(RuntimeError, match="'pooled' take no new calls"):
            pooled.pool.submit(pooled.hold)
        pooled.gate.set()
        ender.join()
        assert ended == [[]]
        assert {future.result() for future in running} == {"let go"}
        with pytest.raises(CancelledError):
            waiting.result()


def test_who_is_still_at_work_is_named() -> None:
    """With the line at which it stands, and for how long it has been there."""
    with Pooled() as pooled:
        pooled.submit_held(2)
        stragglers = pooled.pool.end(0.001)
        assert [s.name for s in stragglers] == ["thread pooled_0", "thread pooled_1"]
        assert all(any("in Pooled.hold" in line for line in s.stack) for s in stragglers)
        assert all(s.age > 0 for s in stragglers)


def test_a_hurried_end_does_not_wait() -> None:
    """Only that can end this: the time lies far away."""
    with Pooled() as pooled:
        pooled.submit_held()
        looks: list[float] = []

        def hurried() -> bool:
            looks.append(time.monotonic())
            return len(looks) > 2

        assert len(pooled.pool.end(10_000, hurried)) == 1


def test_a_call_that_was_cancelled_while_it_waited_is_not_run() -> None:
    """Nor does it take the place of another."""
    with Pooled() as pooled:
        pooled.submit_held(_MAX_THREADS)
        ran: list[str] = []
        waiting = pooled.pool.submit(ran.append, "cancelled")
        after = pooled.pool.submit(ran.append, "after")
        assert waiting.cancel()
        pooled.gate.set()
        after.result()
        assert ran == ["after"]


def test_an_idle_thread_keeps_nothing_of_its_last_call() -> None:
    """S3.8: neither the argument nor the error."""

    class Big:
        pass

    def fails(big: Big) -> None:
        raise ValueError("expected")

    with Pooled() as pooled:
        big = Big()
        gone = weakref.ref(big)
        future = pooled.pool.submit(fails, big)
        assert isinstance(future.exception(), ValueError)
        while not pooled.pool._idle._value:
            pass
        del big, future
        gc.collect()
        assert gone() is None


def test_it_may_be_shut_down_more_than_once() -> None:
    """By the loop, and by its creator; in any order."""
    with Pooled() as pooled:
        pooled.pool.shutdown(wait=False)
        assert pooled.pool.end(0) == []
        pooled.pool.shutdown()


def test_loop_shutdown_default_executor_joins_it() -> None:
    """What asyncio itself does with it still works."""
    with Pooled() as pooled:
        future = pooled.pool.submit(pooled.hold)
        pooled.gate.set()
        pooled.loop.run_until_complete(pooled.loop.shutdown_default_executor())
        assert future.result() == "let go"
        assert not any(worker.is_alive() for worker in pooled.pool._workers)


def test_a_background_loop_names_the_threads_that_are_still_at_work() -> None:
    """S4.5: close is bounded, and no result is accepted after it."""
    gate, entered = threading.Event(), threading.Event()
    done: list[str] = []

    def blocking() -> str:
        entered.set()
        gate.wait()
        return "late"

    async def work() -> None:
        done.append(await asyncio.to_thread(blocking))

    background = BackgroundLoop("pool")
    answer = background.submit(work)
    entered.wait()
    background.close(timeout=0.05)
    # On a busy machine the loop's own thread may have a step to go when the time is up.
    report = background.close()
    assert [straggler.name for straggler in report.stragglers] == ["thread pool_0"]
    assert len(report.cancelled) == 1
    assert background.closed
    assert answer.cancelled()
    thread = next(t for t in threading.enumerate() if t.name == "pool_0")
    gate.set()
    thread.join()
    assert done == []


def test_a_background_loop_waits_for_threads_within_its_time() -> None:
    """S4.5: a call that ends in time is not named."""
    gate, entered = threading.Event(), threading.Event()
    ended: list[str] = []

    def blocking() -> None:
        entered.set()
        gate.wait()
        ended.append("thread")

    async def work() -> None:
        try:
            await asyncio.to_thread(blocking)
        finally:
            gate.set()

    background = BackgroundLoop("pool")
    background.submit(work)
    entered.wait()
    assert background.close().clean
    assert ended == ["thread"]
