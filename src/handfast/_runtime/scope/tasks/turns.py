"""The places of a scope with a limit: first come, first served.

`asyncio.Semaphore` looks through all waiters that were cancelled whenever one of them ends, so
that closing a scope with n waiting tasks takes n * n steps. Here each is looked at once.

A task that has a place and waits for a task that waits for one may wait for ever. While tasks
wait, `_Lookout` looks from time to time whether all places are taken by such tasks, and says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handfast._asyncio_internals import awaited_future, futures_of_wait
from handfast._await_stack import await_chain, awaited
from handfast._runtime.cancel_reason import entered_timeouts
from handfast._runtime.scope.tasks.task_creation import wrapper_of

if TYPE_CHECKING:
    from handfast._runtime.scope.tasks.task_registry import TaskRegistry

AnyTask = asyncio.Task[Any]

# Seconds until the first look. Each further one is twice as late, and the last one is after 27
# minutes: timers without end would hide from the explorer that a program waits for ever.
_FIRST_LOOK = 0.05
_LOOKS = 15


class Turns:
    """A context manager that has at most `limit` tasks inside at a time."""

    __slots__ = ("_free", "_lookout", "_waiting")

    def __init__(self, registry: TaskRegistry, limit: int) -> None:
        self._free = limit
        # Futures of tasks that wait for a place. One that was cancelled stays until its turn.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lookout = _Lookout(registry, self._waiting)

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._lookout.timer is None:
            self._lookout.start()
        try:
            await turn
        except (asyncio.CancelledError, GeneratorExit):
            if not turn.done():  # collected with its loop
                self._waiting.remove(turn)
            elif not turn.cancelled():  # it had its turn already
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        """Give a place that got free to the first one that waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                with suppress(RuntimeError):  # the loop is closed: it will never run again
                    turn.set_result(None)
                return
        self._lookout.stop()
        self._free += 1


class _Lookout:
    """Looks for a deadlock while tasks wait for a place, and reports the first one."""

    __slots__ = ("_looks", "_registry", "_reported", "_waiting", "timer")

    def __init__(self, registry: TaskRegistry, waiting: deque[asyncio.Future[None]]) -> None:
        self._registry = registry
        self._waiting = waiting
        self.timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._reported = False

    def start(self) -> None:
        if not self._reported:
            self._looks = 0
            self._look_later()

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(_FIRST_LOOK * 2.0**self._looks, self._look)
        self._looks += 1

    def _look(self) -> None:
        self.timer = None
        if (pair := self._deadlock()) is not None:
            self._reported = True
            self._report(*pair)
        elif self._looks < _LOOKS:
            self._look_later()

    def _deadlock(self) -> tuple[AnyTask, AnyTask] | None:
        """A task with a place and the task without one for which it waits, if all are such."""
        waiting = {id(turn) for turn in self._waiting if not turn.done()}
        pair: tuple[AnyTask, AnyTask] | None = None
        for task in self._with_or_without_place():
            if id(awaited_future(task)) in waiting:
                continue
            blocked_by = _blocked_by(task, waiting)
            if blocked_by is None:
                return None
            pair = pair or (task, blocked_by)
        return pair

    def _with_or_without_place(self) -> Iterator[AnyTask]:
        registry = self._registry
        for key, task in registry.live.items():
            if task is not None and key not in registry.services and key not in registry.held:
                yield task

    def _report(self, parent: AnyTask, child: AnyTask) -> None:
        registry = self._registry
        created = {member.task: member.origin for member in registry.members()}
        lines = await_chain(parent)
        message = (
            f"{registry.describe()} has limit={registry.limit} and is stuck: each running task "
            f"waits for one that waits for its turn. Task {parent.get_name()!r}, created at "
            f"{created[parent]}, waits at {lines[-1]} for task {child.get_name()!r}, created at "
            f"{created[child]}. Raise the limit, or spawn the children in another scope"
        )
        parent.get_loop().call_exception_handler({"message": message, "task": parent})


def _blocked_by(task: AnyTask, waiting: Container[int]) -> AnyTask | None:
    """A task without a place without which `task` cannot go on; None if it is not certain."""
    suspended = list(awaited(wrapper_of(task)))
    if any(entered_timeouts(running) for running in suspended):
        return None  # which will end the wait
    future = awaited_future(task)
    if isinstance(future, asyncio.Task):
        return _blocked_member(future, waiting)
    children = [child for child in getattr(future, "_children", ()) if not child.done()]  # a gather
    needs_all = False
    if not children and suspended:
        children, needs_all = futures_of_wait(suspended[-1])
    blocked = [_blocked_member(child, waiting) for child in children]
    certain = any(blocked) if needs_all else None not in blocked
    return next(filter(None, blocked), None) if certain else None


def _blocked_member(future: Any, waiting: Container[int]) -> AnyTask | None:
    if not isinstance(future, asyncio.Task) or future.done() or future.cancelling():
        return None
    return future if id(awaited_future(future)) in waiting else _blocked_by(future, waiting)
