"""The owner of what must be entered and left in one task, and the keeper that stands for it.

The loop's teardown, and many a shutdown written by hand, cancels all that `asyncio.all_tasks`
lists: an owner in the middle of its clean-up, too, and once more when its closer is cancelled
along with it. So an owner does not stand on that list. Its keeper does: cancelled, it asks the
owner to leave, over the same one way as everybody else, and stays until it has.
"""

from __future__ import annotations

import asyncio
import gc
from abc import ABC, abstractmethod
from typing import Any

from holdfast.origin import Origin
from holdfast.runtime.errors import StragglersLeft
from holdfast.runtime.failure import mark_cleanup
from holdfast.runtime.patience import join_patiently, out_of_reach, strike_again
from holdfast.runtime.report import Straggler
from holdfast.runtime.stacks import await_chain
from holdfast.runtime.tracking import PAUSE, primed

__all__ = ["Owner", "owner_behind"]

# Owners on their way out may be all that refers to themselves: the loop holds tasks weakly (#88831).
_on_the_way_out: set[asyncio.Task[Any]] = set()


class Owner(ABC):
    """A task that hosts something, as those see it who want it gone."""

    __slots__ = ("_birth", "_keeper", "_leaving", "deadline", "name", "origin", "task")

    task: asyncio.Task[Any]

    def __init__(self, name: str, origin: Origin, deadline: float) -> None:
        self.name = name
        self.origin = origin
        self.deadline = deadline
        self._birth = asyncio.get_running_loop().time()
        self._leaving = False
        self._keeper: Any = None

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Put a keeper in the place of this owner's task, which has just been made."""
        self.task = task
        if not task.done():
            out_of_reach(task)
            # No task factory comes between: a task that is cancelled before its first step
            # never enters its coroutine, and this one must.
            self._keeper = asyncio.Task(
                primed(_keep(task, self)), loop=task.get_loop(), name=task.get_name()
            )

    def retire(self) -> None:
        """The owner is about to end. Its keeper needs two more turns for that, and nobody who
        looks for what is left shall see it, nor hear of it if the loop closes before."""
        if self._keeper is not None:
            out_of_reach(self._keeper)
            self._keeper._log_destroy_pending = False

    def leave(self) -> None:
        """Ask the owner to leave, once: a second cancel would cut its clean-up."""
        if not self._leaving:
            self._leaving = True
            self._ask()
            if not self.task.done():
                _on_the_way_out.add(self.task)
                self.task.add_done_callback(_on_the_way_out.discard)

    @abstractmethod
    def _ask(self) -> None:
        """Let the owner's task know, in the way that it waits for."""

    async def depart(self) -> asyncio.CancelledError | None:
        """Have the owner leave; returns when it is gone, or says that it is not.

        A cancel of the caller cuts nothing short, and is given back.
        """
        if asyncio.current_task() is self.task:
            raise RuntimeError(f"{self.name} cannot wait for its own end: let its user close it")
        self.leave()
        cancelled = await join_patiently({self.task}, self.deadline)
        if not self.task.done():
            if cancelled is not None:
                strike_again(cancelled)
            raise self.straggling()
        return cancelled

    def straggling(self) -> StragglersLeft:
        """That the owner is still there, where it was born and where it stands."""
        age = self.task.get_loop().time() - self._birth
        straggler = Straggler(self.name, self.origin, age, await_chain(self.task))
        return mark_cleanup(StragglersLeft(f"not gone within {self.deadline:g} s: {straggler}"))


# `stacks` looks for the name of the first argument: a keeper stands where its owner stands.
async def _keep(stands_for: asyncio.Task[Any], owner: Owner) -> None:
    try:
        await PAUSE
        await asyncio.wait({stands_for})
    except asyncio.CancelledError:
        owner.leave()
        await join_patiently({stands_for}, owner.deadline)
        if not stands_for.done():
            error = owner.straggling()
            stands_for.get_loop().call_exception_handler(
                {"message": f"at the end of its loop: {error}", "exception": error}
            )


def owner_behind(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    """The owner's task if this one is a keeper, or else the task itself."""
    coro = task.get_coro()
    if getattr(coro, "cr_code", None) is _keep.__code__:
        for value in gc.get_referents(coro):
            if isinstance(value, asyncio.Task):
                return value
    return task
