"""Handles that will cancel a task: `asyncio.timeout`, a timer with `task.cancel`, a signal.

A task with such a handle does not wait forever, whatever it waits for. The way from the handle to
the task goes through a few objects: a bound method, a `Timeout`, the list of a library's scope.

Nor does a task that another one waits for, if that one has such a handle: a cancel of who awaits a
task, a `gather` or a task group reaches the tasks in it. Who waits for a task is in its callbacks.

And a task that sleeps may be a timer in other words: `await asyncio.sleep(60); worker.cancel()`. It
counts if one of its variables has the task, and its code has the word.
"""

from __future__ import annotations

import asyncio
import gc
import time
import types
import weakref
from asyncio import AbstractEventLoop, Future, Task, TaskGroup
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from handfast._asyncio_internals import done_callbacks, parent_of_group, task_sets
from handfast._runtime.scope.live_scopes import scope_of
from handfast._runtime.scope.tasks.task_creation import TrackedTask
from handfast._watch.never_wakes.heap import AT_ONCE
from handfast._watch.never_wakes.holders import is_handle

# aiohttp has seven objects between.
_DEPTH = 8
_MOST = 500
# A way does not go through these: what they hold is no target of a timer.
_NO_WAY = (
    AbstractEventLoop,
    Task,
    types.AsyncGeneratorType,
    types.CoroutineType,
    types.FrameType,
    types.GeneratorType,
    types.ModuleType,
    type,
)
# A variable has the task itself, or some in one of these.
_IN_VARIABLES = (Future, deque, dict, list, set, tuple)


def with_canceller(
    tasks: list[Task[Any]], out_of_time: Callable[[], bool]
) -> list[Task[Any]] | None:
    """Those of the tasks that something will cancel; None if there was not enough time."""
    walk = _Walk(tasks)
    for _ in range(_DEPTH):
        while walk.frontier:
            if out_of_time() or len(walk.leads_to) > _MOST:
                return None
            walk.step()
        walk.next_level()
        time.sleep(0)  # let others run
    return [task for task in tasks if id(task) in walk.found]


class _Walk:
    """The way back from tasks to the handles that lead to them."""

    def __init__(self, tasks: list[Task[Any]]) -> None:
        # By id of an object: the ids of the tasks that it leads to.
        self.leads_to: dict[int, set[int]] = {}
        self.found: set[int] = set()
        self.frontier: list[Any] = []
        self._following: list[Any] = []
        for task in tasks:
            for each in (task, *_waiting_for(task)):
                if id(each) not in self.leads_to:
                    self.frontier.append(each)
                self.leads_to.setdefault(id(each), set()).add(id(task))
        self._own = {id(each) for task in tasks for each in _chain(Task.get_coro(task))}
        # Our own references are no way, and no id is used again.
        self._kept: list[Any] = [tasks, self.frontier, self._following]
        # Nor are asyncio's weak sets of tasks, whose references have these callbacks.
        self._removals = [getattr(each, "_remove", None) for each in task_sets()]

    def step(self) -> None:
        """Look at what refers to some of the frontier."""
        # A tuple, so that `*targets` makes no other one, which would be found too.
        targets, self.frontier = tuple(self.frontier[:AT_ONCE]), self.frontier[AT_ONCE:]
        self._kept += [targets, self.frontier]
        for target in targets:
            for reference in weakref.getweakrefs(target):
                if reference.__callback__ is None or reference.__callback__ not in self._removals:
                    self._note(reference, self.leads_to[id(target)])
        referrers = gc.get_referrers(*targets)
        self._kept.append(referrers)
        for referrer in referrers:
            if type(referrer) is types.CoroutineType and self._cancels_later(referrer):
                self.found |= self._reached_by(referrer, _IN_VARIABLES)
            elif is_handle(referrer):
                self.found |= self._reached_by(referrer)
            elif not _is_own(referrer, self._kept):
                self._note(referrer, self._reached_by(referrer))

    def next_level(self) -> None:
        """Go on with what was found, where that is not known to be cancelled."""
        self.frontier = [
            each for each in self._following if not self.leads_to[id(each)] <= self.found
        ]
        self._following = []
        self._kept += [self.frontier, self._following]

    def _reached_by(self, referrer: Any, kinds: tuple[type, ...] = (object,)) -> set[int]:
        held = [
            self.leads_to[id(each)]
            for each in gc.get_referents(referrer)
            if id(each) in self.leads_to and issubclass(type(each), kinds)
        ]
        return set().union(*held)

    def _note(self, holder: Any, reached: set[int]) -> None:
        if not reached <= self.leads_to.get(id(holder), set()):
            self.leads_to[id(holder)] = self.leads_to.get(id(holder), set()) | reached
            self._following.append(holder)

    def _cancels_later(self, coroutine: Any) -> bool:
        if id(coroutine) in self._own or "cancel" not in coroutine.cr_code.co_names:
            return False
        *_, innermost = _chain(coroutine)
        return getattr(innermost, "cr_code", None) is asyncio.sleep.__code__


def _chain(awaited: Any) -> Iterator[Any]:
    """A coroutine, the one that it awaits, and so on."""
    while issubclass(type(awaited), types.CoroutineType):
        yield awaited
        awaited = awaited.cr_await


def _waiting_for(task: Task[Any]) -> list[Future[Any]]:
    """The tasks and futures that wait for a task, directly or not."""
    seen: dict[int, Future[Any]] = {id(task): task}
    pending: list[Future[Any]] = [task]
    while pending and len(seen) < _MOST:
        future = pending.pop()
        notified = [each for callback, *_ in done_callbacks(future) for each in _notified(callback)]
        # The runtime has no callback for each task.
        is_tracked = issubclass(type(future), TrackedTask)
        registry = scope_of(future) if is_tracked else None  # type: ignore[arg-type]
        for each in notified if registry is None else (*notified, *registry.joiners):
            if id(each) not in seen and issubclass(type(each), Future):
                seen[id(each)] = each
                pending.append(each)
    return list(seen.values())[1:]


def _notified(callback: Any) -> Iterator[Any]:
    """Who learns by a callback that a future is done: the task that awaits it, the parent of a
    group, the outer future of a `gather`."""
    kind = type(callback)
    if kind in (types.MethodType, types.BuiltinMethodType):
        owner = callback.__self__
        yield parent_of_group(owner) if issubclass(type(owner), TaskGroup) else owner
    elif kind is partial:  # `wait_for` until 3.11
        yield from callback.args
    elif kind is types.FunctionType:
        for cell in callback.__closure__ or ():
            with suppress(ValueError):  # it is empty
                yield cell.cell_contents


def _is_own(referrer: Any, kept: list[Any]) -> bool:
    kind = type(referrer)
    if issubclass(kind, _NO_WAY) or str(kind.__module__).startswith("handfast._watch"):
        return True
    if kind is dict and "__builtins__" in referrer:
        return True
    return any(referrer is each for each in kept) or referrer is kept
