"""What is known of the end of a task beyond its result: for the report of a close.

Most tasks have no record. One is made when a task fails in its clean-up, is cancelled after it
has failed, or for a reason that its scope does not know. So a plain end costs nothing.
"""

from __future__ import annotations

from asyncio import CancelledError, Task
from typing import Any
from weakref import WeakKeyDictionary

from handfast._runtime.cancel_reason import (
    THE_PROGRAM,
    CancelReason,
    CancelRequest,
    carried_reason,
)


class TaskRecord:
    """How one task has ended."""

    __slots__ = ("failure", "in_cleanup", "reason")

    def __init__(self) -> None:
        # Its error was raised by its clean-up. This is said of the task and not of the exception
        # object, which may end the work of other tasks.
        self.in_cleanup = False
        # It was cancelled when it had failed with this, in its `finally`.
        self.failure: BaseException | None = None
        # It was cancelled for this reason, and not by its scope.
        self.reason: CancelReason | None = None


_records: WeakKeyDictionary[Task[Any], TaskRecord] = WeakKeyDictionary()
_NONE = TaskRecord()


def record_of(task: Task[Any]) -> TaskRecord:
    """The record of `task`, to write."""
    return _records.setdefault(task, TaskRecord())


def recorded(task: Task[Any]) -> TaskRecord:
    """The record of `task`, to read."""
    return _records.get(task, _NONE)


def note_reason(task: Task[Any], request: CancelRequest | None, cancelled: CancelledError) -> None:
    """Note why `task` was cancelled, if that was not for the reason of the scope's own `request`."""
    ours = request.reason if request is not None and request.reason is not None else THE_PROGRAM
    carried = carried_reason(cancelled)
    if carried is None or carried is ours:
        return
    # A library may replace our reason by a text of its own.
    if ours is THE_PROGRAM or cancelled.args[0] is carried:
        record_of(task).reason = carried
