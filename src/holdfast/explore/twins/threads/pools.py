"""The threads of an executor. A job is given to a thread that has nothing to do, to a new one, or
waits for the first that is free, as in `ThreadPoolExecutor`.

That a thread begins with a job is an event of its own; the hand-over of the result is another,
and comes about by itself: the future tells the loop with `call_soon_threadsafe`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, _base
from concurrent.futures.thread import BrokenThreadPool
from types import CodeType
from typing import TYPE_CHECKING, Any

from holdfast.explore.twins.threads.members import NOT_THEIRS
from holdfast.explore.twins.threads.words import name_of, program_line

if TYPE_CHECKING:
    from holdfast.explore.twins.threads.baton import Baton
    from holdfast.explore.twins.threads.worker import Worker

__all__ = ["Pool"]


def _code_that_tells() -> Any:
    """The code of the callback by which `asyncio.wrap_future` lets a loop know."""
    chain: Any = asyncio.futures._chain_future  # type: ignore[attr-defined]
    codes = [each for each in chain.__code__.co_consts if isinstance(each, CodeType)]
    return next(code for code in codes if code.co_name == "_call_set_state")


_TELLS = _code_that_tells()


class _Job:
    """A call that is to be made in a thread."""

    __slots__ = ("args", "function", "future", "kwargs")

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.future: Future[Any] = Future()
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def run(self, worker: Worker) -> bool:
        """In the thread. Whether the end of the job is still to come, with the hand-over."""
        future = self.future
        if not future.set_running_or_notify_cancel():
            return False
        try:
            result = self.function(*self.args, **self.kwargs)
        except NOT_THEIRS:
            raise
        except BaseException as error:
            worker.last = ends_later = self._only_tells(worker.baton.loop)
            future.set_exception(error)
        else:
            worker.last = ends_later = self._only_tells(worker.baton.loop)
            future.set_result(result)
        return ends_later

    def _only_tells(self, loop: Any) -> bool:
        """Whether the end of the job does nothing but tell the loop, so that the thread need not
        get another turn for what follows."""
        future: Any = self.future
        callbacks = future._done_callbacks
        return (
            len(callbacks) == 1
            and getattr(callbacks[0], "__code__", None) is _TELLS
            and callbacks[0].__closure__ is not None
            and any(cell.cell_contents is loop for cell in callbacks[0].__closure__)
            and not future._waiters
            and not future._condition._waiters
        )

    def fail(self) -> None:
        """The fault: the machine lets the job down."""

        def injected() -> None:
            raise OSError("injected")

        self.function, self.args, self.kwargs = injected, (), {}


class Pool:
    """What stands for the threads of `executor` in one run."""

    def __init__(self, baton: Baton, executor: Any) -> None:
        self.baton = baton
        self.executor = executor
        prefix = str(executor._thread_name_prefix)
        # The name that an executor gives itself counts on from run to run.
        unnamed = prefix.startswith("ThreadPoolExecutor-")
        self.name = f"executor {len(baton.pools) + 1}" if unnamed else prefix
        self.used_at = program_line(sys._getframe(1))
        self._jobs: dict[Worker, _Job] = {}
        self._free: list[Worker] = []
        self._backlog: deque[_Job] = deque()
        self.workers: list[Worker] = []

    @property
    def unfinished(self) -> int:
        """How many jobs have not come to their end."""
        return len(self._jobs) + len(self._backlog)

    def submit(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[Any]:
        executor = self.executor
        if executor._broken:
            raise _broken(executor)
        if executor._shutdown or self._fault(function):
            raise RuntimeError("cannot schedule new futures after shutdown")
        job = _Job(function, args, kwargs)
        if self._free:
            self._begin(self._free.pop(0), job)
        elif len(self.workers) < executor._max_workers:
            self._begin(self._hire(), job)
        else:
            self._backlog.append(job)
        return job.future

    def _fault(self, function: Callable[..., Any]) -> bool:
        loop = self.baton.loop
        if "executor" not in loop.settings.faults:
            return False
        said = f"the executor refuses {name_of(function)}"
        return bool(loop.choose("executor", 2, lambda: ("", "refused"), lambda _: said))

    def _hire(self) -> Worker:
        executor = self.executor
        name = f"{executor._thread_name_prefix or executor}_{len(self.workers)}"
        thread = threading.Thread(name=name, daemon=True)
        worker = self.baton.hire(thread, self.name, self._serve)
        worker.pool = self
        self.workers.append(worker)
        executor._threads.add(thread)
        return worker

    def _begin(self, worker: Worker, job: _Job) -> None:
        self._jobs[worker] = job
        worker.idle = False

        def fail() -> None:
            job.fail()
            self.baton.give(worker)

        label = f"{worker.name} begins with {name_of(job.function)}"
        worker.channel.post(lambda: self.baton.give(worker), label=label, faults={"executor": fail})

    def _serve(self, worker: Worker) -> None:
        """The life of one thread."""
        if not self._initialised():
            return
        while not worker.ended:
            if not self._jobs[worker].run(worker):
                self.done(worker)
            if not worker.ended:
                worker.park()

    def done(self, worker: Worker) -> None:
        """The thread has handed over and looks for more."""
        del self._jobs[worker]
        if self._backlog:
            self._begin(worker, self._backlog.popleft())
        elif self.executor._shutdown:
            worker.retire()
        else:
            worker.idle = True
            self._free.append(worker)

    def _initialised(self) -> bool:
        """Whether the executor's initializer has done its work in this thread."""
        executor = self.executor
        if executor._initializer is None:
            return True
        try:
            executor._initializer(*executor._initargs)
        except NOT_THEIRS:
            raise
        except BaseException:
            _base.LOGGER.critical("Exception in initializer:", exc_info=True)
            executor._initializer_failed()
            for job in (*self._jobs.values(), *self._backlog):
                job.future.set_exception(_broken(executor))
            self._jobs.clear()
            self._backlog.clear()
            return False
        return True

    def shut_down(self, *, wait: bool, cancel_futures: bool) -> None:
        """As `ThreadPoolExecutor.shutdown`."""
        self.executor._shutdown = True
        self.executor._work_queue.put(None)  # for the real threads of one from before the run
        if cancel_futures:
            for job in (*self._jobs.values(), *self._backlog):
                job.future.cancel()  # not one that has begun
            self._backlog.clear()
        for worker in self._free:
            worker.retire()
        self._free.clear()
        if wait:
            for worker in self.workers:
                worker.thread.join()

    def leave(self) -> None:
        """The run is over, and the executor may go on to live without these threads."""
        self.executor._threads.difference_update([worker.thread for worker in self.workers])


def _broken(executor: Any) -> BrokenThreadPool:
    return BrokenThreadPool(executor._broken)
