"""In which order the tasks of a scope are cancelled. Only decides; the registry acts.

A task may use any resource that its scope holds, so all tasks are cancelled and joined first. Then
the resources are left one by one, the newest first. A scope that is held by another scope gives
any other order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable
from typing import Any

from handfast._origin import Origin
from handfast._runtime.cancel_reason import CancelReason


class Member:
    """One task as it was when closing began: an ended task no longer has its origin."""

    __slots__ = ("key", "origin", "reason", "start_time", "task")

    def __init__(
        self,
        key: object,
        task: asyncio.Task[Any],
        origin: Origin | None,
        start_time: float | None,
    ) -> None:
        self.key = key
        self.task = task
        self.origin = origin
        self.start_time = start_time
        # Why it was cancelled.
        self.reason: CancelReason | None = None


def waves(members: Iterable[Member], held: Container[object]) -> list[list[Member]]:
    """The groups to cancel, one after the other has ended.

    `members` is in order of creation. In a group the oldest task is cancelled first: in the queues
    of asyncio's own locks and events it is the first too. In the other order each removal would
    search its queue from the wrong end.
    """
    tasks: list[Member] = []
    resources: list[Member] = []
    for member in members:
        if not member.task.done():
            (resources if member.key in held else tasks).append(member)
    return [tasks, *([resource] for resource in reversed(resources))]
