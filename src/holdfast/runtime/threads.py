"""Waiting in one thread for a loop in another, which may stop at any moment.

Nothing here waits on a promise that a stopped loop can no longer keep: a blocked waiter looks
up from time to time whether the loop still runs.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from holdfast.runtime.tracking import PAUSE, primed

__all__ = ["HEARTBEAT", "run_across_threads"]

T = TypeVar("T")

# How often a blocked thread looks whether the loop still runs. A loop announces neither its
# stop nor its close, so there is nothing to wait for but the time.
HEARTBEAT = 0.05


def run_across_threads(
    loop: AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]], timeout: float
) -> T | None:
    """Run a coroutine on `loop` and block until it has ended; its value, or its error.

    None if it was cancelled, has not ended in time, or the loop does not run. It is not taken
    back then: a loop that comes to life again will run it.
    """
    call: _Call[T] = _Call(loop, make)
    try:
        loop.call_soon_threadsafe(call.begin)
    except RuntimeError:  # the loop is closed
        return None
    until = time.monotonic() + timeout
    while not call.ended.done() and loop.is_running() and time.monotonic() < until:
        wait([call.ended], timeout=min(until - time.monotonic(), HEARTBEAT))
    # Whoever comes first: from now on an error in it goes to the loop's exception handler.
    return None if call.ended.cancel() else call.ended.result()


class _Call(Generic[T]):
    """One coroutine on its way to another thread."""

    def __init__(self, loop: AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._loop = loop
        self._make = make
        self._task: asyncio.Task[T] | None = None  # the loop holds it weakly (#88831)
        self.ended: Future[T | None] = Future()

    def begin(self) -> None:
        # Entered, so that nothing is "never awaited" if this is the last turn of the loop; and
        # no task factory comes between, which might refuse an entered coroutine.
        self._task = asyncio.Task(primed(self._run()), loop=self._loop)
        setattr(self._task, "_log_destroy_pending", False)  # noqa: B010
        self._task.add_done_callback(self._end)

    async def _run(self) -> T:
        await PAUSE
        return await self._make()

    def _end(self, task: asyncio.Task[T]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if not self.ended.set_running_or_notify_cancel():
            if error is not None:
                message = "failed after whoever waited for it in another thread had given up"
                self._loop.call_exception_handler({"message": message, "exception": error})
        elif error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None if task.cancelled() else task.result())
