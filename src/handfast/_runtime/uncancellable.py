"""Waiting that a cancel does not interrupt, for clean-up with a deadline.

`await task` passes the waiter's cancel on into the task. `asyncio.shield` lets the waiter go and
leaves the work unowned, and the end of the loop cancels it (#86802, #155854, #156321). Clean-up
that must be finished is waited for with the functions of this file.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Collection, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from handfast._asyncio_internals import create_named_task, unregister_task
from handfast._await_stack import await_chain
from handfast._runtime.failure import resurface

T = TypeVar("T")

# What is kept of a time-out for the steps after it: seconds, and at most this part of the whole.
_LAST_STEPS = 0.05
_LAST_PART = 0.1

# How many cancels in a row, one at each step, are waited out. Some scopes of anyio send them for ever.
_MOST_CANCELS = 5

_joiners: weakref.WeakKeyDictionary[asyncio.Task[Any], weakref.ref[asyncio.Task[Any]]] = (
    weakref.WeakKeyDictionary()
)

# Tasks that no one else refers to while they run: the loop has only weak references (#88831).
_running: set[asyncio.Task[Any]] = set()


def cleanup_time(timeout: float) -> float:
    """After how many seconds a clean-up is cancelled, so that it can end within its time-out."""
    return timeout - min(_LAST_STEPS, timeout * _LAST_PART)


async def wait_uncancelled(
    futures: Collection[asyncio.Future[Any]], timeout: float | None = None
) -> asyncio.CancelledError | None:
    """Wait until one of `futures` is done, even if the waiter is cancelled meanwhile.

    Neither a cancel of the waiter nor the time-out affects the futures. The first cancel is
    returned: the caller raises it when it has finished its own work.
    """
    loop = asyncio.get_running_loop()
    until = None if timeout is None else loop.time() + timeout
    cancelled: asyncio.CancelledError | None = None
    try:
        # asyncio.wait suspends even if all futures are done. A task that is cancelled at every
        # step would then never get past it, so look first.
        while not any(future.done() for future in futures):
            left = None if until is None else max(0.0, until - loop.time())
            try:
                await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
                # An anyio scope cancels at every step of the loop: the next cancel would come
                # before the time-out each time.
                if until is None or loop.time() < until:
                    continue
            break
        if cancelled is not None:
            await _step_without_cancel()
        return cancelled
    finally:
        del cancelled  # it refers to this frame


async def _step_without_cancel() -> None:
    """Come to a step of the loop in which no cancel is raised.

    In one with a cancel, an error that is raised loses its context, and with it the errors that have
    led to it (#108668).
    """
    for _ in range(_MOST_CANCELS):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
            break


def run_uncancelled(coro: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    """Start a task that the end of the loop does not cancel.

    The caller keeps a reference to it and joins it, with `wait_uncancelled`.
    """
    task = create_named_task(asyncio.get_running_loop(), coro, name)
    hide_from_all_tasks(task)
    if (joiner := asyncio.current_task()) is not None:
        _joiners[task] = weakref.ref(joiner)
    return task


def joiner_of(task: asyncio.Task[Any]) -> asyncio.Task[Any] | None:
    """The task that has started `task` with `run_uncancelled`, and waits for it."""
    joiner = _joiners.get(task)
    return None if joiner is None else joiner()


def keep_alive(task: asyncio.Task[Any]) -> None:
    """Refer to a task until it has ended, so that it is not collected."""
    if not task.done():
        _running.add(task)
        task.add_done_callback(_running.discard)


def hide_from_all_tasks(task: asyncio.Task[Any]) -> None:
    """Remove a task from `asyncio.all_tasks`, whose members the end of a loop cancels.

    The caller makes sure that the task is joined.
    """
    unregister_task(task)


def raise_outcome(
    error: BaseException | None,
    cancelled: asyncio.CancelledError | None,
    *,
    survived: int | None = None,
    covering: bool = False,
) -> None:
    """After a wait: raise `error`, or else the cancel that came meanwhile, or return.

    If both are there, the error is raised and the cancel is delivered at the next await. So is a
    cancel that is being handled: in `finally: await shielded(...)` the error takes its place.
    `survived`: see `redeliver_cancel`.
    """
    try:
        if error is not None:
            cancelled = cancelled or _handled_cancel()
            if cancelled is not None:
                redeliver_cancel(cancelled, survived)
            resurface(error, covering=covering)
        if cancelled is not None:
            raise cancelled
    finally:
        del error, cancelled  # they refer to this frame


def _handled_cancel() -> asyncio.CancelledError | None:
    handled = sys.exception()
    return handled if isinstance(handled, asyncio.CancelledError) else None


def survived_cancels() -> int:
    """How many cancels the running task has survived: `cancelling()` without one that it handles."""
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return 0
    return task.cancelling() - (_handled_cancel() is not None)


def redeliver_cancel(cancelled: asyncio.CancelledError, survived: int | None = None) -> None:
    """Deliver a cancel again, at the next await of the running task, which raises an error now.

    `survived`: how many cancels the task had survived before. Of those since then, a time-out may
    take back its own, and another one is left. None if that is not known.

    Not if the sender has taken the cancel back by then, as a time-out or a task group does when
    the error passes through it. (`uncancel` leaves a pending cancel in place before 3.13, so
    a `cancel` that is sent right now would be too early: #117407.)
    """
    task = asyncio.current_task()
    if task is not None and (count := task.cancelling()):
        least = count if survived is None else min(count, survived + 1)
        task.get_loop().call_soon(_redeliver, task, least, cancelled.args)


def _redeliver(task: asyncio.Task[Any], least: int, args: tuple[Any, ...]) -> None:
    if not task.done() and task.cancelling() >= least:
        task.uncancel()
        task.cancel(*args)  # anyio recognises its own cancels by their message


class CleanupDeadline:
    """Cancels a clean-up that has used up its time, once, and records where it waited then."""

    __slots__ = ("_task", "_timeout", "_timer", "_waited_at", "_what", "expired")

    def __init__(self, task: asyncio.Task[Any], what: str, timeout: float) -> None:
        self._task = task
        self._what = what
        self._timeout = timeout
        self._waited_at: tuple[str, ...] = ()
        self._timer = task.get_loop().call_later(cleanup_time(timeout), self._expire)
        self.expired = False

    def _expire(self) -> None:
        self.expired = True
        # The cancel takes effect at the next step of the task: its stack is still the old one.
        self._task.cancel()
        self._waited_at = await_chain(self._task)

    def stop(self) -> None:
        """Stop the timer: the clean-up has ended."""
        self._timer.cancel()

    def error(self) -> TimeoutError:
        """The error for a clean-up that took too long."""
        where = f"; it was waiting at {self._waited_at[-1]}" if self._waited_at else ""
        return TimeoutError(f"{self._what} took more than {self._timeout:g} s{where}")
