"""The default executor of a loop that we run: its shutdown has a deadline.

At its exit the interpreter waits, without bound, for every thread of a stock ThreadPoolExecutor.
These threads are daemons and are joined until the deadline; those that still work then are
returned as stragglers. It keeps S4.5.
"""

from __future__ import annotations

import os
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeAlias, TypeVar

from handfast._runtime.report import Straggler
from handfast._runtime.threads.cross_thread_call import LOOP_CHECK_INTERVAL

T = TypeVar("T")
P = ParamSpec("P")
Call: TypeAlias = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]

# As many threads as the stock executor has.
_MAX_THREADS = min(32, (os.cpu_count() or 1) + 4)


# A subclass only because set_default_executor accepts nothing else: all public methods of an
# executor are implemented here.
class ThreadPool(ThreadPoolExecutor):
    """Threads for the blocking calls of one loop."""

    def __init__(self, loop: AbstractEventLoop, name: str) -> None:
        super().__init__()
        self._name = name
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._guard = threading.Lock()
        self._workers: list[_Worker] = []
        self._over = False
        loop.set_default_executor(self)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        with self._guard:
            if self._over:
                raise RuntimeError(f"the threads of {self._name!r} take no new calls: it ends")
            if not self._idle.acquire(blocking=False) and len(self._workers) < _MAX_THREADS:
                worker = _Worker(f"{self._name}_{len(self._workers)}", self._calls, self._idle)
                worker.start()
                self._workers.append(worker)
            self._calls.put((future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._guard:
            self._over = True
            if cancel_futures:
                self._cancel_waiting()
            self._calls.put(None)
        if wait:
            for worker in self._workers:
                worker.join()

    def _cancel_waiting(self) -> None:
        while True:
            try:
                call = self._calls.get_nowait()
            except Empty:
                return
            if call is not None:
                call[0].cancel()

    def end(
        self, seconds: float, stop_waiting: Callable[[], bool] = lambda: False
    ) -> list[Straggler]:
        """Wait for running calls, cancel waiting ones; return the threads that still work."""
        until = time.monotonic() + seconds
        self.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            while worker.is_alive() and not stop_waiting():
                if (left := until - time.monotonic()) <= 0:
                    break
                worker.join(min(left, LOOP_CHECK_INTERVAL))
        return [Straggler.of_thread(w, w.began) for w in self._workers if w.is_alive()]


class _Worker(threading.Thread):
    """One thread: takes calls until it finds None, which it leaves for the next thread."""

    def __init__(
        self, name: str, calls: SimpleQueue[Call | None], idle: threading.Semaphore
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._calls = calls
        self._idle = idle
        self.began = 0.0

    def run(self) -> None:
        while (call := self._calls.get()) is not None:
            self.began = time.monotonic()
            _run_call(*call)
            del call  # otherwise it would be kept alive until the next one
            self._idle.release()
        self._calls.put(None)


def _run_call(
    future: Future[Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)
    finally:
        del future  # the error would refer to it, through its traceback and this frame
