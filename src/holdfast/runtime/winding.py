"""The end of a loop: all tasks and async generators that are still there, bounded.

Used by `run` and `BackgroundLoop`, after the program's own scopes have had their say. A scope
that nobody has closed is closed here, in its order; what nobody owns is cancelled, once.
Whoever is still there in the end is given back by name.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.runtime.child import kill_what_runs_on
from holdfast.runtime.closing import Closing
from holdfast.runtime.keeping import owner_behind
from holdfast.runtime.lifecycle import Event, State
from holdfast.runtime.patience import out_of_reach
from holdfast.runtime.report import Straggler
from holdfast.runtime.roster import AnyTask, Roster
from holdfast.runtime.stacks import await_chain
from holdfast.runtime.tracking import certificate

__all__ = ["drive", "wait_all", "wind_down"]

# Who is in a hurry still gives so many turns of the loop to those who end at once.
_TURNS = 10


def drive(
    loop: asyncio.AbstractEventLoop, task: AnyTask, cut: Callable[[], object] = lambda: None
) -> list[BaseException]:
    """Run `loop` until `task` is done, whatever flies out of other tasks meanwhile.

    A KeyboardInterrupt, a SystemExit or a loop.stop() in one task may not keep the others from
    their end: the loop goes on after `cut()`. What has flown is given back.
    """
    flown: list[BaseException] = []
    while not task.done():
        try:
            loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit) as error:
            flown.append(error)
            cut()
        except RuntimeError:  # the loop was stopped
            if task.done():
                raise
            cut()
    return flown


async def wind_down(
    *,
    deadline: float,
    asked: Iterable[AnyTask] = (),
    known: Iterable[AnyTask] = (),
    hurry: asyncio.Future[Any] | None = None,
) -> list[Straggler]:
    """End every other task of this loop, and its async generators; who is still there?

    `asked` have been cancelled already; `known` are not waited for, as somebody has done that
    before. `hurry` being done means: do not wait any longer.
    """
    loop = asyncio.get_running_loop()
    end = _End(loop, deadline, asked, known, hurry or loop.create_future())
    await end.tasks()
    await end.generators()
    await end.tasks()  # which the generators may have started
    return await end.stragglers()


class _End:
    """One winding down: who has been asked, and how much time is left."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadline: float,
        asked: Iterable[AnyTask],
        known: Iterable[AnyTask],
        hurry: asyncio.Future[Any],
    ) -> None:
        self._loop = loop
        self._until = loop.time() + deadline
        self._asked = set(asked)
        self._hurry = hurry
        # Not waited for, and not reported.
        self._spared = {*known, asyncio.current_task()}

    def _others(self) -> set[AnyTask]:
        return asyncio.all_tasks() - self._spared

    async def tasks(self) -> None:
        """Clean-up may start tasks of its own, so look again until there is nobody new."""
        mine: set[AnyTask] = set()
        while fresh := self._others() - self._asked:
            owned = {task: roster for task in fresh if (roster := _roster_of(task)) is not None}
            for roster in set(owned.values()):
                self._close(roster)
            mine |= fresh - owned.keys()
            for task in fresh - owned.keys():
                task.cancel()
            self._asked |= fresh
            await self._wait(self._others())
        await self._wait(self._others())
        for task in mine:
            self._report(task)

    def _close(self, roster: Roster) -> None:
        """The owner knows in which order; one that is closed has asked everybody."""
        if roster.state is not State.CLOSED:
            roster.move(Event.CLOSE_NOW)
            left = max(0.0, self._until - self._loop.time())
            self._spared.add(Closing(roster, 0.0, left).task)

    def _report(self, task: AnyTask) -> None:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            message = "a task that nobody owned failed at the end of its loop"
            self._loop.call_exception_handler(
                {"message": message, "exception": error, "task": task}
            )

    async def generators(self) -> None:
        closing = self._loop.create_task(
            self._loop.shutdown_asyncgens(), name="the clean-up of async generators"
        )
        self._asked.add(closing)
        await self._wait({closing})

    async def _wait(self, tasks: set[AnyTask]) -> None:
        await wait_all(tasks, self._until - self._loop.time(), self._hurry)

    async def stragglers(self) -> list[Straggler]:
        for _ in range(_TURNS):
            if self._others():
                await asyncio.sleep(0)
        left = self._others()
        for task in left | self._spared:
            # They are named, or are ours: asyncio need not say so once more.
            setattr(task, "_log_destroy_pending", False)  # noqa: B010
        return [
            *(_straggler(task, self._loop.time()) for task in left),
            *(Straggler(f"killed: {who}", None, 0.0, ()) for who in kill_what_runs_on(self._loop)),
        ]


async def wait_all(tasks: set[AnyTask], seconds: float, stop: asyncio.Future[Any]) -> None:
    """Wait until all have ended, the time is up, or `stop` is done."""
    if not tasks or stop.done():
        return
    waiter = asyncio.get_running_loop().create_task(asyncio.wait(tasks, timeout=max(0.0, seconds)))
    out_of_reach(waiter)
    try:
        await asyncio.wait({waiter, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
    await asyncio.wait({waiter})


def _roster_of(task: AnyTask) -> Roster | None:
    """The roster on which a task stands: its tracking coroutine refers to it."""
    for value in gc.get_referents(owner_behind(task).get_coro()):
        if type(value) is Roster:
            return value
    return None


def _straggler(task: AnyTask, now: float) -> Straggler:
    origin, birth = certificate(owner_behind(task).get_coro())
    age = 0.0 if birth is None else now - birth
    return Straggler(f"task {task.get_name()!r}", origin, age, await_chain(task))
