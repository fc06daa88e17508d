"""A task that another part of the program has cancelled is not cancelled a second time.

A second cancel would interrupt the clean-up that the first has started. `Task.cancelling()` alone
does not say that a clean-up is under way: it also counts a cancel that the task has survived, and
a failed task group leaves it too high on 3.11 and 3.12 (#116720). So the coroutines of the task are
looked at: one of them refers to the CancelledError that it handles.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

from handfast._asyncio_internals import awaited_future
from handfast._await_stack import awaited
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.scope.tasks.task_creation import wrapper_of

# Seconds until a task that was left alone is looked at again: it may survive its cancel, as that
# of a time-out inside it. Each further look is twice as late.
_FIRST_LOOK = 0.05


def cancel_unless_in_progress(task: asyncio.Task[Any], reason: CancelReason | None) -> bool:
    """Cancel `task`; if it handles an earlier cancel, only when it goes on after that.

    Returns whether this is its first cancel.
    """
    if task.cancelling() and _handles_cancel(task):
        _PostponedCancel(task, reason)
        return False
    first = not (task.cancelling() and _is_cancel_pending(task))
    task.cancel(reason if first else None)
    return first


def cancel_after_this_step(task: asyncio.Task[Any], reason: CancelReason | None) -> None:
    """Cancel the running task if it goes on after this step: it may end in it, with a result or with
    the failure that is why its scope ends."""

    def cancel() -> None:
        if not task.done():
            cancel_unless_in_progress(task, reason)

    task.get_loop().call_soon(cancel)


class _PostponedCancel:
    """Looks at a task from time to time until it has ended, or can be cancelled."""

    __slots__ = ("_delay", "_reason", "_task", "_timer")

    def __init__(self, task: asyncio.Task[Any], reason: CancelReason | None) -> None:
        self._task = task
        self._reason = reason
        self._delay = _FIRST_LOOK
        self._timer = task.get_loop().call_later(_FIRST_LOOK, self._look)
        task.add_done_callback(lambda _: self._timer.cancel())

    def _look(self) -> None:
        if self._task.cancelling() and _handles_cancel(self._task):
            self._delay *= 2
            self._timer = self._task.get_loop().call_later(self._delay, self._look)
        else:
            self._task.cancel(self._reason)


def _handles_cancel(task: asyncio.Task[Any]) -> bool:
    """Whether this task, or one to which its cancel was passed on, is in its clean-up."""
    return any(
        isinstance(value, asyncio.CancelledError)
        for cancelled in _passed_on(task)
        for running in awaited(wrapper_of(cancelled))
        for value in gc.get_referents(running)
    )


def _is_cancel_pending(task: asyncio.Task[Any]) -> bool:
    """Whether a cancel of this task is raised in its next step."""
    return any(
        getattr(cancelled, "_must_cancel", False)  # all versions
        or ((waiter := awaited_future(cancelled)) is not None and waiter.cancelled())
        for cancelled in _passed_on(task)
    )


def _passed_on(task: asyncio.Task[Any]) -> Iterator[asyncio.Task[Any]]:
    """The task, and those for which it waits: `await` and `gather` pass a cancel on."""
    todo: list[Any] = [task]
    seen: set[int] = set()
    while todo:
        future = todo.pop()
        if id(future) in seen:
            continue
        seen.add(id(future))
        if isinstance(future, asyncio.Task):
            if future.cancelling():
                yield future
            todo.append(awaited_future(future))
        else:
            todo += getattr(future, "_children", ())  # of a gather
