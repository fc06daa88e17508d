"""Runs a coroutine on the loop of another thread and waits for it, even if that loop stops.

A stopped loop never resolves a future, so the waiting thread checks from time to time whether
the loop still runs.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from handfast._asyncio_internals import mute_destroyed_warning
from handfast._runtime.scope.tasks.task_wrapper import YIELD_ONCE, advance_to_pause

T = TypeVar("T")

# How often a blocked thread checks whether the loop still runs. A loop announces neither its
# stop nor its close, so there is no event to wait for.
LOOP_CHECK_INTERVAL = 0.05


def run_across_threads(
    loop: AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]], timeout: float
) -> T | None:
    """Run a coroutine on `loop` and block until it has ended; return its value or raise.

    None if it was cancelled, has not ended in time, or the loop does not run. It is not
    withdrawn then: a loop that is started again runs it.
    """
    call: _Call[T] = _Call(loop, make)
    try:
        loop.call_soon_threadsafe(call.begin)
    except RuntimeError:  # the loop is closed
        return None
    until = time.monotonic() + timeout
    while not call.ended.done() and loop.is_running() and time.monotonic() < until:
        wait([call.ended], timeout=min(until - time.monotonic(), LOOP_CHECK_INTERVAL))
    # If the cancel succeeds, a later error is reported to the loop's exception handler.
    return None if call.ended.cancel() else call.ended.result()


class _Call(Generic[T]):
    """One coroutine that is passed to another thread."""

    def __init__(self, loop: AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._loop = loop
        self._make = make
        self._task: asyncio.Task[T] | None = None  # the loop has only a weak reference (#88831)
        self.ended: Future[T | None] = Future()

    def begin(self) -> None:
        # Already entered, so that there is no "never awaited" warning if this is the last step
        # of the loop; not through a task factory, which may refuse an entered coroutine.
        self._task = asyncio.Task(advance_to_pause(self._run()), loop=self._loop)
        mute_destroyed_warning(self._task)
        self._task.add_done_callback(self._end)

    async def _run(self) -> T:
        await YIELD_ONCE
        return await self._make()

    def _end(self, task: asyncio.Task[T]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if not self.ended.set_running_or_notify_cancel():
            if error is not None:
                message = "a call failed after the thread that waited for it had given up"
                self._loop.call_exception_handler({"message": message, "exception": error})
        elif error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None if task.cancelled() else task.result())
