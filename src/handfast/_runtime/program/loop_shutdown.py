"""Ends all tasks and async generators of a loop, within a deadline.

Used by `run` and `BackgroundLoop`, after the program's own scopes were closed. A scope that is
still open is closed here, in its order; a task without an owner is cancelled, once. Tasks that
do not end are returned as stragglers.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable
from typing import Any

from handfast._asyncio_internals import create_named_task, mute_destroyed_warning, pending_tasks
from handfast._runtime.cancel_reason import LOOP_ENDED
from handfast._runtime.hosting.owner_task import owner_behind
from handfast._runtime.process.child import kill_children_of
from handfast._runtime.report import Straggler
from handfast._runtime.scope.shutdown import Shutdown
from handfast._runtime.scope.states import Event, State
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast._runtime.scope.tasks.task_registry import AnyTask, TaskRegistry
from handfast._runtime.scope.tasks.task_wrapper import origin_and_start_time
from handfast._runtime.uncancellable import hide_from_all_tasks

# Even without any time left, tasks get so many steps of the loop to end.
_LAST_STEPS = 10


def run_until_done(
    loop: asyncio.AbstractEventLoop,
    task: AnyTask,
    on_interrupt: Callable[[], object] = lambda: None,
) -> list[BaseException]:
    """Run `loop` until `task` is done, and return the exceptions that have interrupted it.

    A KeyboardInterrupt, a SystemExit or a loop.stop() in one task must not keep the others from
    ending: the loop runs on after `on_interrupt()`.
    """
    interrupts: list[BaseException] = []
    while not task.done():
        try:
            loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit) as error:
            interrupts.append(error)
            on_interrupt()
        except RuntimeError:  # the loop was stopped
            if task.done():
                raise
            on_interrupt()
    return interrupts


async def shut_down_loop(
    *,
    timeout: float,
    cancelled: Iterable[AnyTask] = (),
    ignored: Iterable[AnyTask] = (),
    stop_waiting: asyncio.Future[Any] | None = None,
) -> list[Straggler]:
    """End every other task of this loop, and its async generators; return the stragglers.

    `cancelled` were cancelled already; `ignored` are reported elsewhere, and neither cancelled
    nor waited for. Once `stop_waiting` is done, nothing is waited for.
    """
    loop = asyncio.get_running_loop()
    end = _LoopShutdown(loop, timeout, cancelled, ignored, stop_waiting or loop.create_future())
    await end.tasks()
    await end.generators()
    await end.tasks()  # clean-up of generators may have started new ones
    return await end.stragglers()


class _LoopShutdown:
    """One shutdown of a loop: which tasks were cancelled, and how much time is left."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout: float,
        cancelled: Iterable[AnyTask],
        ignored: Iterable[AnyTask],
        stop_waiting: asyncio.Future[Any],
    ) -> None:
        self._loop = loop
        self._until = loop.time() + timeout
        self._cancelled = set(cancelled)
        self._stop_waiting = stop_waiting
        # Neither waited for nor reported.
        self._ignored = {*ignored, asyncio.current_task()}

    def _others(self) -> set[AnyTask]:
        return pending_tasks(self._loop) - self._ignored

    async def tasks(self) -> None:
        """Clean-up may start new tasks, so look again until there are none."""
        unowned: set[AnyTask] = set()
        while new := self._others() - self._cancelled:
            owners = {task: owner for task in new if (owner := _registry_of(task)) is not None}
            for registry in set(owners.values()):
                self._close(registry)
            unowned |= new - owners.keys()
            for task in new - owners.keys():
                task.cancel(LOOP_ENDED)
            self._cancelled |= new
            await self._wait(self._others())
        await self._wait(self._others())
        for task in unowned:
            self._report(task)

    def _close(self, registry: TaskRegistry) -> None:
        """Close a scope in its own order. One that is closed has cancelled its tasks already."""
        if registry.state is not State.CLOSED:
            registry.move(Event.CLOSE_NOW, LOOP_ENDED)
            left = max(0.0, self._until - self._loop.time())
            self._ignored.add(Shutdown(registry, 0.0, left).task)

    def _report(self, task: AnyTask) -> None:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            message = "a task without an owner failed at the end of its loop"
            self._loop.call_exception_handler(
                {"message": message, "exception": error, "task": task}
            )

    async def generators(self) -> None:
        closing = create_named_task(
            self._loop, self._loop.shutdown_asyncgens(), "the clean-up of async generators"
        )
        self._cancelled.add(closing)
        await self._wait({closing})

    async def _wait(self, tasks: set[AnyTask]) -> None:
        await wait_all(tasks, self._until - self._loop.time(), self._stop_waiting)

    async def stragglers(self) -> list[Straggler]:
        for _ in range(_LAST_STEPS):
            if self._others():
                await asyncio.sleep(0)
        left = self._others()
        for task in left | self._ignored:
            # They are reported here, or are our own: asyncio need not report them again.
            mute_destroyed_warning(task)
        return [
            *(_straggler(task, self._loop.time()) for task in left),
            *map(Straggler.of_killed, kill_children_of(self._loop)),
        ]


async def wait_all(tasks: set[AnyTask], seconds: float, stop: asyncio.Future[Any]) -> None:
    """Wait until all have ended, the time is up, or `stop` is done."""
    if not tasks or stop.done():
        return
    waiter = asyncio.get_running_loop().create_task(asyncio.wait(tasks, timeout=max(0.0, seconds)))
    hide_from_all_tasks(waiter)
    try:
        await asyncio.wait({waiter, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
    await asyncio.wait({waiter})


def _registry_of(task: AnyTask) -> TaskRegistry | None:
    """The registry of a task: its wrapper refers to it."""
    for value in gc.get_referents(wrapper_of(owner_behind(task))):
        if type(value) is TaskRegistry:
            return value
    return None


def _straggler(task: AnyTask, now: float) -> Straggler:
    origin, start_time = origin_and_start_time(wrapper_of(owner_behind(task)))
    age = None if start_time is None else now - start_time
    return Straggler.of(task, origin, age, f"task {task.get_name()!r}")
