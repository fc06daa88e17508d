"""`BackgroundLoop`: a loop in a thread of its own, for programs that are not async.

One scope owns the tasks. `close` ends, in this order, the tasks of the scope, other tasks, the
executor, the loop, the thread. It keeps S4.3, S4.4 and S4.8.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import threading
import time
import warnings
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from handfast._asyncio_internals import create_named_task, detach_selector
from handfast._origin import Origin
from handfast._runtime.arguments import CLOSE_TIMEOUT, seconds
from handfast._runtime.cancel_reason import CLOSE, reason_here
from handfast._runtime.errors import WrongLoop
from handfast._runtime.fork import keep_loop, register_inherited
from handfast._runtime.program.loop_shutdown import run_until_done, shut_down_loop
from handfast._runtime.program.thread_pool import ThreadPool
from handfast._runtime.report import CloseReport, Straggler
from handfast._runtime.scope.scope import Scope
from handfast._runtime.scope.shutdown import report_on
from handfast._runtime.uncancellable import cleanup_time, hide_from_all_tasks

T = TypeVar("T")
P = ParamSpec("P")


class BackgroundLoop:
    """An event loop in a daemon thread, with a scope.

    >>> async def fetch(n):
    ...     return n + 1
    >>> with BackgroundLoop("prefetch") as background:
    ...     background.submit(fetch, 41).result()
    42

    Close it with `with` or with `close()`. If that is forgotten, it warns and is closed when it
    is dropped, or when the program ends.

    Parameters:
        name: the name of the thread and of the scope, in reports and errors.
        grace: seconds in which tasks may finish by themselves when the loop is closed.
        loop_factory: creates the event loop, as `uvloop.new_event_loop` does.
    """

    _thread: _LoopThread | None = None  # if __init__ fails early, __del__ finds this

    def __init__(
        self,
        name: str = "handfast",
        *,
        grace: float | None = None,
        loop_factory: Callable[[], AbstractEventLoop] | None = None,
    ) -> None:
        self.name = name
        self.origin = Origin.here(1)
        self.scope = Scope(name, on_failure="report", grace=grace)
        self.scope._registry.origin = self.origin
        self.scope._registry.loop = None  # not the loop that may run in this thread
        self._closing = threading.Lock()
        self._thread = _LoopThread(name, self.scope, loop_factory or asyncio.new_event_loop)
        # Through a weak reference, so that a dropped loop is closed before the program ends.
        self._at_exit = _closer(weakref.ref(self))
        atexit.register(self._at_exit)

    def submit(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run `await function(*args, **kwargs)` on the loop. See `Scope.submit`."""
        return self.scope._submit_queue.submit(function, args, kwargs, sys._getframe(1))

    @property
    def closed(self) -> bool:
        """Whether the thread has ended."""
        return self._thread is None or not self._thread.thread.is_alive()

    def close(self, *, grace: float | None = None, timeout: float = CLOSE_TIMEOUT) -> CloseReport:
        """Close the scope, then other tasks of the loop, then the loop and its thread.

        From any thread but its own. Returns within `timeout`; what still runs then is in the
        report, and a later call tries again.
        """
        timeout = seconds("timeout", timeout)
        loop_thread = self._thread
        assert loop_thread is not None
        self._require_own_process()
        if threading.current_thread() is loop_thread.thread:
            raise RuntimeError(
                f"the background loop {self.name!r} cannot wait in its own thread for its own "
                "end; close it in another thread"
            )
        until = time.monotonic() + timeout
        if not self._closing.acquire(timeout=timeout):  # another thread closes it
            return loop_thread.report()
        try:
            reason = reason_here(CLOSE)
            if loop_thread.thread.is_alive():
                times = self.scope._close_times(grace, timeout)
                self.scope._ending.close_from_thread(*times, reason)
                loop_thread.end(until)
            atexit.unregister(self._at_exit)
            # Not kept: the thread may end after a close that was too short for it (A13).
            return loop_thread.report(reason.origin)
        finally:
            self._closing.release()

    def _require_own_process(self) -> None:
        if (registry := self.scope._registry).forked:
            raise WrongLoop(
                f"the background loop {self.name!r}, created at {self.origin}, runs in process "
                f"{registry.pid}, and this process is a fork of it; close it there"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and self.scope._registry.forked:
            return  # as of a child that exits inside the block of its parent
        report = self.close()
        if error is None:
            report.raise_if_unclean()
        elif not report.clean:
            error.add_note(str(report))

    def __del__(self) -> None:
        if self._thread is not None and self._thread.thread.is_alive():
            atexit.unregister(self._at_exit)
            self._warn("dropped")
            self._thread.stop()

    def _warn(self, what: str) -> None:
        names = ", ".join(sorted({task.get_name() for task in self.scope.tasks})[:10]) or "none"
        warnings.warn(
            f"the background loop {self.name!r}, created at {self.origin}, was {what} without "
            f"close; it is closed now. Its tasks: {names}",
            ResourceWarning,
            source=self,
            stacklevel=3,
        )


class _LoopThread:
    """The thread and its loop. It has no reference to the BackgroundLoop, so that a dropped one
    is collected, and warns, while the thread runs."""

    def __init__(
        self, name: str, scope: Scope, loop_factory: Callable[[], AbstractEventLoop]
    ) -> None:
        self._scope = scope
        self._loop = loop_factory()
        self._pool = ThreadPool(self._loop, name)
        self._left: list[Straggler] = []
        self._started = time.monotonic()
        # When the shutdown must have ended; None until it begins.
        self._until: float | None = None
        self._joined = False
        self._stop = asyncio.Event()
        # Set when the loop runs, or will never run.
        self._ready = threading.Event()
        self._start_error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._start()
        register_inherited(self)

    def _start(self) -> None:
        """Start the thread, and wait until its loop runs; raise what has kept it from that."""
        try:
            self.thread.start()
            self._ready.wait()
            if self._start_error is not None:
                raise self._start_error
        except Exception:
            self._loop.close()
            raise
        except BaseException:  # an interrupt: the thread may run
            if self.thread.ident is None:
                self._loop.close()
            else:
                self.stop()
            raise
        finally:
            self._start_error = None  # its traceback refers to this frame

    def on_fork(self) -> None:
        """In a forked child: the loop and its thread are those of the parent."""
        detach_selector(self._loop)
        keep_loop(self._loop)

    def _run(self) -> None:
        """The function of the thread."""
        try:
            self._run_loop()
        except BaseException as error:
            if self._ready.is_set():
                raise
            self._start_error = error  # of a task factory, or there is no memory
        finally:
            self._ready.set()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        # One task from start to end: between two calls of run_until_complete() the loop would
        # count as stopped.
        coro = self._main()
        try:
            main = create_named_task(self._loop, coro, f"handfast: {self.thread.name}")
        except BaseException:
            coro.close()
            raise
        hide_from_all_tasks(main)
        interrupts = run_until_done(self._loop, main, self._stop.set)
        self._left += self._pool.end(self._time_left())
        if self._left and not self._joined:
            message = f"still running at the end of {self.thread.name!r}: " + "; ".join(
                str(straggler) for straggler in self._left
            )
            self._loop.call_exception_handler({"message": message})
        self._loop.close()
        if interrupts:
            raise interrupts[0]

    async def _main(self) -> None:
        self._scope._registry.bind()
        self._ready.set()
        await self._stop.wait()
        if not self._scope.closed:  # dropped, or stopped by code on the loop
            await self._scope.close(timeout=self._time_left())
        # Stragglers of a close are in the report of the scope already.
        ignored = self._scope.tasks if self._joined else ()
        self._left += await shut_down_loop(timeout=self._time_left(), ignored=ignored)

    def _time_left(self) -> float:
        """Seconds for the next part of the shutdown: a part of what is left, so that the whole
        shutdown is in time."""
        if self._until is None:  # dropped: nobody waits for it
            self._until = time.monotonic() + CLOSE_TIMEOUT
        return cleanup_time(max(0.0, self._until - time.monotonic()))

    def end(self, until: float) -> None:
        """Stop the loop and wait for the thread."""
        self._until = until
        self._joined = True
        self.stop()
        self.thread.join(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stop.set)

    def report(self, closed_at: Origin | None = None) -> CloseReport:
        """What has become of the tasks so far, with the thread if it still runs."""
        report = report_on(self._scope._registry, closed_at)
        left = [*report.stragglers, *self._left]
        if self.thread.is_alive():
            left.append(Straggler.of_thread(self.thread, self._started))
        return replace(report, stragglers=tuple(left))


def _closer(background: weakref.ref[BackgroundLoop]) -> Callable[[], None]:
    def close() -> None:
        alive = background()
        if alive is not None and not alive.scope._registry.forked:
            alive._warn("left open to the end of the program")
            report = alive.close()
            if not report.clean:
                sys.stderr.write(f"{report}\n")

    return close
