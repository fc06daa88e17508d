"""The threads of an executor. A job is given to an idle thread or to a new one, or waits for the
first that is free, as in `ThreadPoolExecutor`.

The start of a job is one event. The hand-over of its result is another, and needs no code here: the
future notifies the loop with `call_soon_threadsafe`.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, _base
from typing import TYPE_CHECKING, Any

from handfast._explore.simulation.threads.locks import EXPLORER_ERRORS, MEMBERS, Lock, get_ident
from handfast._explore.simulation.threads.worker import name_of, program_line
from handfast._explorer_internals import (
    broken_pool,
    chain_callback_code,
    chain_copies_at_once,
    initializer_of,
    resolve_job,
    runs_in_interpreters,
    worker_context,
)

if TYPE_CHECKING:
    from handfast._explore.simulation.threads.baton import Baton
    from handfast._explore.simulation.threads.worker import Worker


_INTERPRETERS = "its jobs would run in other interpreters, where nothing is controlled"
_THREADS_INSTEAD = "explore it with a ThreadPoolExecutor in its place"


class _Job:
    """A call to run in a thread."""

    __slots__ = ("fails", "function", "future", "resolved")

    def __init__(self, function: Callable[..., Any], resolved: Any) -> None:
        self.future: Future[Any] = Future()
        self.function = function
        # The call in the form that a worker context takes.
        self.resolved = resolved
        self.fails = False

    def run(self, worker: Worker, context: Any) -> bool:
        """Run the job, in the thread. Returns whether the job ends later, with the hand-over."""
        future = self.future
        if not future.set_running_or_notify_cancel():
            return False
        try:
            if self.fails:
                # Inside the try, so that it reaches the caller through the future, as a real error does.
                raise OSError("injected")
            result = context.run(self.resolved)
        except EXPLORER_ERRORS:
            raise
        except BaseException as error:
            worker.last = ends_later = self._only_notifies_loop(worker.baton.loop)
            future.set_exception(error)
        else:
            worker.last = ends_later = self._only_notifies_loop(worker.baton.loop)
            future.set_result(result)
        return ends_later

    def _only_notifies_loop(self, loop: Any) -> bool:
        """Whether the end of the job only notifies the loop, so that the thread needs no other turn
        after it."""
        future: Any = self.future
        callbacks = future._done_callbacks
        return (
            len(callbacks) == 1
            and getattr(callbacks[0], "__code__", None) is chain_callback_code()
            and callbacks[0].__closure__ is not None
            and any(cell.cell_contents is loop for cell in callbacks[0].__closure__)
            and not future._waiters
            and not future._condition._waiters
        )

    def fail(self) -> None:
        """Fault: the job raises OSError."""
        self.fails = True


class _PlainContext:
    """What `concurrent.futures.thread.WorkerContext` of 3.14 does, for an earlier executor."""

    def __init__(self, executor: Any) -> None:
        self._initializer, self._initargs = initializer_of(executor)

    def initialize(self) -> None:
        if self._initializer is not None:
            self._initializer(*self._initargs)

    def run(self, job: Any) -> Any:
        function, args, kwargs = job
        return function(*args, **kwargs)

    def finalize(self) -> None:
        """Nothing to undo."""


class Pool:
    """Replaces the threads of `executor` in one run."""

    def __init__(self, baton: Baton, executor: Any) -> None:
        # A subclass of ThreadPoolExecutor since 3.14, so it arrives here and not at a refusal.
        if runs_in_interpreters(executor):
            baton.refuse("InterpreterPoolExecutor.submit", _INTERPRETERS, _THREADS_INSTEAD)
        self.baton = baton
        self.executor = executor
        prefix = str(executor._thread_name_prefix)
        # The default name has a counter that continues from run to run.
        unnamed = prefix.startswith("ThreadPoolExecutor-")
        self.name = f"executor {len(baton.pools) + 1}" if unnamed else prefix
        self.used_at = program_line(sys._getframe(1))
        self._jobs: dict[Worker, _Job] = {}
        self._free: list[Worker] = []
        self._backlog: deque[_Job] = deque()
        self.workers: list[Worker] = []

    @property
    def unfinished(self) -> int:
        """The number of jobs that have not ended."""
        return len(self._jobs) + len(self._backlog)

    def submit(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[Any]:
        executor = self.executor
        if executor._broken:
            raise broken_pool(executor)
        if executor._shutdown or self._fault(function):
            raise RuntimeError("cannot schedule new futures after shutdown")
        job = _Job(function, resolve_job(executor, function, args, kwargs))
        if self._free:
            # First in, first out; which idle thread of a real pool takes a job makes no difference.
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
        worker = self.baton.start_worker(thread, self.name, self._serve)
        worker.pool = self
        self.workers.append(worker)
        # `shutdown(wait=True)` of the standard library joins the threads in this set.
        executor._threads.add(thread)
        return worker

    def _begin(self, worker: Worker, job: _Job) -> None:
        self._jobs[worker] = job
        worker.idle = False

        def fail() -> None:
            job.fail()
            self.baton.give(worker)

        label = f"{worker.name} starts {name_of(job.function)}"
        event = worker.channel.post(
            lambda: self.baton.give(worker), label=label, faults={"executor": fail}
        )
        if self._is_done_at_once(worker, job):
            worker.channel.drop(event)
            self.baton.give_now(worker)

    def _is_done_at_once(self, worker: Worker, job: _Job) -> bool:
        """Whether the job is done before the step that submits it continues.

        The program can see this where `asyncio.wrap_future` copies the result of a done future:
        `await loop.run_in_executor(...)` does not yield then.
        """
        if not chain_copies_at_once() or MEMBERS.get(get_ident()) is not self.baton:
            return False
        # Events of one thread keep their order, so an earlier one has to arrive first.
        if len(worker.channel.queue) > 1 or self.baton.loop.settling:
            return False
        answer = self.baton.loop.choose(
            "thread",
            2,
            lambda: ("", worker.name),
            lambda _: f"{worker.name} runs {name_of(job.function)} at once",
        )
        return bool(answer)

    def _serve(self, worker: Worker) -> None:
        """Run jobs, in a thread of the executor."""
        context = worker_context(self.executor) or _PlainContext(self.executor)
        if not self._initialised(context):
            return
        try:
            while not worker.ended:
                if not self._jobs[worker].run(worker, context):
                    self.done(worker)
                if not worker.ended:
                    worker.park()
        finally:
            context.finalize()

    def done(self, worker: Worker) -> None:
        """The job has ended; the thread takes the next one."""
        del self._jobs[worker]
        if self._backlog:
            self._begin(worker, self._backlog.popleft())
        elif self.executor._shutdown:
            worker.retire()
        else:
            worker.idle = True
            self._free.append(worker)

    def _initialised(self, context: Any) -> bool:
        """Run the initializer of the executor; False if it failed."""
        executor = self.executor
        try:
            context.initialize()
        except EXPLORER_ERRORS:
            raise
        except BaseException:
            # The same log and the same broken pool as in `concurrent.futures.thread._worker`.
            _base.LOGGER.critical("Exception in initializer:", exc_info=True)
            executor._initializer_failed()
            for job in (*self._jobs.values(), *self._backlog):
                job.future.set_exception(broken_pool(executor))
            self._jobs.clear()
            self._backlog.clear()
            return False
        return True

    def shut_down(self, *, wait: bool, cancel_futures: bool) -> None:
        """As `ThreadPoolExecutor.shutdown`."""
        self.executor._shutdown = True
        self.executor._work_queue.put(
            None
        )  # for real threads, if the executor is older than the run
        if cancel_futures:
            for job in (*self._jobs.values(), *self._backlog):
                job.future.cancel()  # no effect on a job that has started
            self._backlog.clear()
        for worker in self._free:
            worker.retire()
        self._free.clear()
        if wait:
            for worker in self.workers:
                worker.thread.join()

    def made_in_run(self) -> bool:
        """Whether the executor was created in this run; an older one may outlive it."""
        lock = self.executor._shutdown_lock
        return isinstance(lock, Lock) and lock.created_in == self.baton.number

    def leave(self) -> None:
        """Remove these threads from the executor, which may outlive the run."""
        self.executor._threads.difference_update([worker.thread for worker in self.workers])
