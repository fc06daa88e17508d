"""An owner task for what must be entered and left in one task, and its stand-in.

The end of a loop, and many shutdowns written by hand, cancel everything in `asyncio.all_tasks`:
also an owner in the middle of its clean-up, and again when its closer is cancelled. So an owner
is hidden from that list, and a stand-in task is there in its place. When the stand-in is
cancelled it calls `leave()`, as every other closer does, and waits until the owner has ended.
"""

from __future__ import annotations

import asyncio
import gc
from abc import ABC, abstractmethod
from typing import Any

from handfast._asyncio_internals import mute_destroyed_warning
from handfast._await_stack import stand_in
from handfast._origin import Origin
from handfast._runtime.errors import StragglersLeft
from handfast._runtime.failure import mark_cleanup
from handfast._runtime.report import Straggler, straggler_error
from handfast._runtime.scope.tasks.task_wrapper import YIELD_ONCE, advance_to_pause
from handfast._runtime.uncancellable import (
    hide_from_all_tasks,
    keep_alive,
    redeliver_cancel,
    survived_cancels,
    wait_uncancelled,
)


class Owner(ABC):
    """A task that hosts a resource or a generator, for the code that closes it."""

    __slots__ = ("_leaving", "_stand_in", "_start_time", "name", "origin", "task", "timeout")

    task: asyncio.Task[Any]

    def __init__(self, name: str, origin: Origin, timeout: float) -> None:
        self.name = name
        self.origin = origin
        self.timeout = timeout
        self._start_time = asyncio.get_running_loop().time()
        self._leaving = False
        self._stand_in: asyncio.Task[None] | None = None

    def install_stand_in(self, task: asyncio.Task[Any]) -> None:
        """Put a stand-in into `all_tasks` instead of the owner's task, which was just created."""
        self.task = task
        if not task.done():
            hide_from_all_tasks(task)
            # Not through a task factory, and already entered: a task that is cancelled before
            # its first step never enters its coroutine, and this one must.
            self._stand_in = asyncio.Task(
                advance_to_pause(_stand_in_for(task, self)),
                loop=task.get_loop(),
                name=task.get_name(),
            )

    def remove_stand_in(self) -> None:
        """Hide the stand-in: the owner is about to end.

        The stand-in ends two steps of the loop later. Until then it must not count as a leak,
        nor be reported as a pending task if the loop closes before.
        """
        if self._stand_in is not None:
            hide_from_all_tasks(self._stand_in)
            mute_destroyed_warning(self._stand_in)

    def leave(self) -> None:
        """Request the exit, once: a second cancel would interrupt the clean-up."""
        if not self._leaving:
            self._leaving = True
            self._request_exit()
            keep_alive(self.task)

    @abstractmethod
    def _request_exit(self) -> None:
        """Wake or cancel the owner's task, depending on what it waits for."""

    async def leave_and_join(self) -> asyncio.CancelledError | None:
        """Request the exit and wait until the owner has ended; raise StragglersLeft if not.

        A cancel of the caller interrupts nothing, and is returned.
        """
        if asyncio.current_task() is self.task:
            raise RuntimeError(f"{self.name} cannot wait for its own end: close it in another task")
        survived = survived_cancels()
        self.leave()
        cancelled = await wait_uncancelled({self.task}, self.timeout)
        if not self.task.done():
            if cancelled is not None:
                redeliver_cancel(cancelled, survived)
            raise self.straggler_error()
        return cancelled

    def straggler_error(self) -> StragglersLeft:
        """The error for an owner that has not ended: where it was created and where it waits."""
        age = self.task.get_loop().time() - self._start_time
        straggler = Straggler.of(self.task, self.origin, age, self.name)
        return mark_cleanup(straggler_error(straggler, self.timeout))


@stand_in  # it is shown waiting where its owner waits
async def _stand_in_for(task: asyncio.Task[Any], owner: Owner) -> None:
    try:
        await YIELD_ONCE
        await asyncio.wait({task})
    except asyncio.CancelledError:
        owner.leave()
        await wait_uncancelled({task}, owner.timeout)
        if not task.done():
            error = owner.straggler_error()
            task.get_loop().call_exception_handler(
                {"message": f"at the end of its loop: {error}", "exception": error}
            )


def owner_behind(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    """The owner's task if `task` is a stand-in, or else `task` itself."""
    coro = task.get_coro()
    if getattr(coro, "cr_code", None) is _stand_in_for.__code__:
        for value in gc.get_referents(coro):
            if isinstance(value, asyncio.Task):
                return value
    return task
