"""`SubmitFuture`: what `submit` returns. It always gets one outcome, even if the loop stops."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from handfast._asyncio_internals import running_loop
from handfast._runtime.errors import LoopStopped
from handfast._runtime.scope.tasks.task_registry import TaskRegistry
from handfast._runtime.threads.cross_thread_call import LOOP_CHECK_INTERVAL

T = TypeVar("T")

# The states of a concurrent future, as in `concurrent.futures._base`.
PENDING = "PENDING"
_CANCELLED = "CANCELLED"
_FINISHED = "FINISHED"

# The attributes of a stock future: among them a condition with a lock and a queue.
_STOCK_ATTRIBUTES = frozenset(vars(Future()))

# Held for a few instructions, and never while another lock is being taken. Re-entrant, because
# the garbage collector may drop a loop, and so fail futures, within these instructions.
_resolving = threading.RLock()


def _renew_lock() -> None:
    """In a forked child: the thread that has the lock may be in the parent only."""
    global _resolving
    _resolving = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class SubmitFuture(Future[T]):
    """A future that does not wait for a loop that has stopped.

    `result` and `exception` check from time to time whether the loop still runs. For other
    waiters (`wait`, `as_completed`, a callback) a future whose loop was stopped in the middle of
    the call is resolved when its scope is closed or dropped.

    Most futures are resolved before they are read. So the condition, the callbacks and the
    waiters of a stock future, which cost more than the task behind it, are created only when
    they are first accessed. From then on this is a stock future in all respects.
    """

    # Of the class, until there is an outcome.
    _state = PENDING
    _result = None
    _exception = None
    _complete = False  # whether the attributes of a stock future were created

    def __init__(self, registry: TaskRegistry) -> None:
        self._registry = registry

    def __getattr__(self, name: str) -> object:
        if name not in _STOCK_ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        stock = vars(Future())
        own = vars(self)
        with _resolving:
            self._complete = True
            for key, value in stock.items():
                own.setdefault(key, value)  # another thread may have been here
        return own[name]

    # --- called by waiters -----------------------------------------------------------------

    def result(self, timeout: float | None = None) -> T:
        try:
            if self._state != _FINISHED:
                self._wait(timeout)
            elif self._exception is None:
                return self._result  # type: ignore[return-value]
            return super().result(0)
        finally:
            del self  # the error would refer to it, through its traceback and this frame

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._state != _FINISHED:
            self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        """Wait for an outcome or the time-out; if the loop stops, LoopStopped is the outcome."""
        if self._registry.forked:  # before any lock, which a thread of the parent may have held
            raise loop_stopped(self._registry)
        until = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self.done():
                left = (
                    LOOP_CHECK_INTERVAL
                    if until is None
                    else min(LOOP_CHECK_INTERVAL, until - time.monotonic())
                )
                if left <= 0:
                    return  # the caller's `super().result(0)` raises the TimeoutError
                self._require_foreign_thread()
                if not self._condition.wait(left) and not self._registry.is_running():
                    break
            else:
                return
        self.fail_stopped()

    def fail_stopped(self) -> None:
        """Fail because the loop does not run. If it runs again, it does not run the call."""
        if self.resolve_error(loop_stopped(self._registry)):
            self._cancel_task()

    def _require_foreign_thread(self) -> None:
        loop = self._registry.loop
        if loop is not None and loop is running_loop():
            raise RuntimeError(
                f"waiting here would block the loop of {self._registry.describe()}, which has to "
                "give the result; on this thread use: await asyncio.wrap_future(...)"
            )

    def cancel(self) -> bool:
        """Cancel the call, and the task that runs it."""
        if self._state == _FINISHED or not self.resolve_cancelled():
            return False
        self._cancel_task()
        return True

    def _cancel_task(self) -> None:
        registry = self._registry
        if registry.loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                registry.loop.call_soon_threadsafe(_cancel_on_loop, registry, self)

    # --- called by the loop: only the first outcome counts ---------------------------------

    def resolve(self, value: T) -> None:
        """Set the result."""
        with _resolving:
            if not self._complete:
                if self._state == PENDING:
                    self._result = value
                    self._state = _FINISHED
                return
        with suppress(InvalidStateError):
            self.set_result(value)

    def resolve_error(self, error: BaseException) -> bool:
        """Set an exception. False if there is another outcome."""
        with _resolving:
            if not self._complete:
                if self._state != PENDING:
                    return False
                self._exception = error
                self._state = _FINISHED
                return True
        try:
            self.set_exception(error)
        except InvalidStateError:
            return False
        return True

    def resolve_cancelled(self) -> bool:
        """Set it cancelled. False if there is another outcome."""
        if not super().cancel():
            return False
        with self._condition:
            # Only this wakes concurrent.futures.wait and as_completed.
            if self._state == _CANCELLED:
                self.set_running_or_notify_cancel()
        return True


def _cancel_on_loop(registry: TaskRegistry, future: SubmitFuture[T]) -> None:
    """Cancel the task of a future that was resolved without it."""
    if (task := registry.live.get(future)) is not None:
        registry.request_cancel(future, task)


def loop_stopped(registry: TaskRegistry) -> LoopStopped:
    """The error for a call whose loop does not run."""
    if registry.forked:
        return LoopStopped(
            f"the event loop of {registry.describe()} runs in process {registry.pid}, and this "
            "process is a fork of it; create a scope or a BackgroundLoop in this process"
        )
    return LoopStopped(
        f"the event loop of {registry.describe()} has stopped and cannot run this call; submit "
        "while the loop runs, and close the scope before the loop"
    )
