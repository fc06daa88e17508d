"""The live tasks of a scope, and futures for the moment at which few enough of them are left.

`task_registry` adds how they are created, fail and are cancelled.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Task
from typing import Any, Protocol, TypeAlias

from handfast._runtime.cancel_reason import CancelReason

AnyTask: TypeAlias = Task[Any]


class HeldScope(Protocol):
    """A scope that another scope holds."""

    @property
    def registry(self) -> LiveTasks: ...

    @property
    def waits_for_tasks(self) -> bool: ...

    def stop_waiting(self, reason: CancelReason) -> None: ...


class Hosted(Protocol):
    """A resource inside an owner task, as far as the registry knows it."""

    inner: HeldScope | None

    @property
    def held(self) -> bool: ...

    def leave(self) -> None: ...


class Watcher:
    """Gives a future, within `with`, that is done once at most `floor` tasks are alive."""

    __slots__ = ("_tasks", "floor", "future")

    def __init__(self, tasks: LiveTasks, floor: int) -> None:
        assert tasks.loop is not None
        self._tasks = tasks
        self.floor = floor
        self.future: asyncio.Future[None] = tasks.loop.create_future()

    def __enter__(self) -> asyncio.Future[None]:
        self._tasks.watchers.append(self)
        self._tasks.update_floor()
        self._tasks.on_task_ended()
        return self.future

    def __exit__(self, *_: object) -> None:
        self._tasks.watchers.remove(self)
        self._tasks.update_floor()

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class LiveTasks:
    """The live tasks of one scope, and who waits for their end."""

    __slots__ = ("floor", "held", "live", "loop", "services", "watchers")

    def __init__(self) -> None:
        # Set by the first bind(), and the same from then on.
        self.loop: AbstractEventLoop | None = None
        # What identifies a task, mostly the user's coroutine -> the task, in order of creation.
        # None until an eager task, which runs before it is returned, has made its first step.
        # Added by the three functions that create tasks, removed by the wrappers.
        self.live: dict[object, AnyTask | None] = {}
        # Keys of services, and of owner tasks with the resource that each hosts. These tasks do
        # not end by themselves.
        self.services: set[object] = set()
        self.held: dict[object, Hosted] = {}
        self.watchers: list[Watcher] = []
        # The highest floor of the watchers. A task that ends compares it with `live`.
        self.floor = -1

    def tasks(self) -> tuple[AnyTask, ...]:
        """The live tasks, as a snapshot. From any thread."""
        return tuple(task for task in self.live.copy().values() if task is not None)

    def update_floor(self) -> None:
        self.floor = max((watcher.floor for watcher in self.watchers), default=-1)

    def on_task_ended(self) -> None:
        """Wake the watchers whose floor is reached."""
        count = len(self.live)
        for watcher in self.watchers:
            if count <= watcher.floor:
                watcher.wake()

    def wake_watchers(self) -> None:
        """Wake all watchers: their times or the state have changed."""
        for watcher in self.watchers:
            watcher.wake()

    @property
    def never_ending(self) -> int:
        """The number of live tasks that do not end by themselves: services and owners."""
        return sum(key in self.live for keys in (self.services, self.held) for key in keys)

    def has_ending_tasks(self) -> bool:
        """Whether there are other tasks, for which a close with grace waits."""
        return len(self.live) > self.never_ending

    def busy_part(self) -> LiveTasks | None:
        """This scope if it has such tasks; or else one that it holds, which waits for its tasks."""
        if self.has_ending_tasks():
            return self
        inner = (hosted.inner for hosted in self.held.values() if hosted.inner is not None)
        parts = (scope.registry.busy_part() for scope in inner if scope.waits_for_tasks)
        return next((part for part in parts if part is not None), None)

    def watch(self, floor: int) -> Watcher:
        """A context manager with a future that is done once at most `floor` tasks are alive."""
        return Watcher(self, floor)
