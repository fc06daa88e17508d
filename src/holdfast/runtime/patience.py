"""Waiting that no cancel cuts short, and a clean-up that takes no longer than it may.

`await task` hands the waiter's cancel on into the task; `asyncio.shield` lets the waiter go
and leaves the work to itself, and the end of the loop cuts it (#86802, #155854, #156321). What
must be done to the end is waited for with these instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from holdfast.runtime.stacks import await_chain

__all__ = ["CUT", "Cut", "join_patiently", "out_of_reach", "strike_again"]

# Clean-up that has used this part of its deadline is cancelled, so that it has the rest of it
# to end before the deadline itself.
CUT = 0.9


async def join_patiently(
    futures: Collection[asyncio.Future[Any]], timeout: float | None = None
) -> asyncio.CancelledError | None:
    """Wait until one of `futures` is done, whatever is asked of the waiter meanwhile.

    Neither a cancel of the waiter nor the time-out touches the futures. The first cancel is
    given back: the caller raises it when everything is in order.
    """
    loop = asyncio.get_running_loop()
    until = None if timeout is None else loop.time() + timeout
    cancelled: asyncio.CancelledError | None = None
    try:
        # asyncio.wait takes a turn even when all is done, and a cancel at every turn would win.
        while not any(future.done() for future in futures):
            left = None if until is None else max(0.0, until - loop.time())
            try:
                await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
                # An anyio scope cancels at every turn: its next cancel would come before the
                # time-out, again and again.
                if until is None or loop.time() < until:
                    continue
            break
        return cancelled
    finally:
        del cancelled  # it refers to this frame


def strike_again(cancelled: asyncio.CancelledError) -> None:
    """An error has to go out in place of a cancel that the running task was patient about.
    The cancel is not forgotten: it strikes where the task waits next.

    Unless whoever sent it has taken it back by then, as a time-out or a task group does when
    the error passes through it. (`uncancel` leaves a pending cancel in place before 3.13, so
    this cannot be left to a `cancel` that is sent now: #117407.)
    """
    task = asyncio.current_task()
    if task is not None and (count := task.cancelling()):
        task.get_loop().call_soon(_strike, task, count, cancelled.args)


def _strike(task: asyncio.Task[Any], count: int, args: tuple[Any, ...]) -> None:
    if not task.done() and task.cancelling() >= count:
        task.uncancel()
        task.cancel(*args)  # anyio knows its own cancels by their message


def out_of_reach(task: asyncio.Task[Any]) -> None:
    """Take a task off asyncio's list, so that the loop's own teardown, which cancels whatever
    stands there, does not cut its clean-up. Whoever calls this sees to it that it is joined."""
    asyncio._unregister_task(task)


class Cut:
    """Cancels a clean-up that has used up its time, once, and knows where it stood then."""

    __slots__ = ("_deadline", "_stood", "_task", "_timer", "_what", "late")

    def __init__(self, task: asyncio.Task[Any], what: str, deadline: float) -> None:
        self._task = task
        self._what = what
        self._deadline = deadline
        self._stood: tuple[str, ...] = ()
        self._timer = task.get_loop().call_later(deadline * CUT, self._cut)
        self.late = False

    def _cut(self) -> None:
        self.late = True
        self._task.cancel()  # which takes effect at its next step
        self._stood = await_chain(self._task)

    def call_off(self) -> None:
        self._timer.cancel()

    def error(self) -> TimeoutError:
        stood = f"; it stood at {self._stood[-1]}" if self._stood else ""
        return TimeoutError(f"{self._what} took more than {self._deadline:g} s{stood}")
