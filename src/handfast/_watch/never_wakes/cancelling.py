"""Handles that will cancel a task: `asyncio.timeout`, a timer with `task.cancel`, a signal.

A task with such a handle does not wait forever, whatever it waits for. The way from the handle to
the task goes through a few objects: a bound method, a `Timeout`, the list of a library's scope.

Nor does a task that another one waits for, if that one has such a handle: a cancel of who awaits a
task, a `gather` or a task group reaches the tasks in it. Who waits for a task is in its callbacks.
"""

from __future__ import annotations

import gc
import time
import types
from asyncio import AbstractEventLoop, Future, Task, TaskGroup
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from handfast._asyncio_internals import done_callbacks, parent_of_group
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


def with_canceller(
    tasks: list[Task[Any]], out_of_time: Callable[[], bool]
) -> list[Task[Any]] | None:
    """Those of the tasks that a handle will cancel; None if there was not enough time."""
    sources: dict[int, set[int]] = {}
    frontier: list[Any] = []
    for task in tasks:
        for each in (task, *_waiting_for(task)):
            if id(each) not in sources:
                frontier.append(each)
            sources.setdefault(id(each), set()).add(id(task))
    found: set[int] = set()
    kept: list[Any] = [tasks, sources, frontier]  # so that no id is used again
    for _ in range(_DEPTH):
        following: list[Any] = []
        kept.append(following)
        while frontier:
            if out_of_time() or len(sources) > _MOST:
                return None
            # A tuple, so that `*targets` makes no other one, which would be found too.
            targets, frontier = tuple(frontier[:AT_ONCE]), frontier[AT_ONCE:]
            kept += [targets, frontier]
            referrers = gc.get_referrers(*targets)
            kept.append(referrers)
            for referrer in referrers:
                if _is_own(referrer, kept):
                    continue
                held = [id(each) for each in gc.get_referents(referrer) if id(each) in sources]
                of = set().union(*(sources[each] for each in held))
                if is_handle(referrer):
                    found |= of
                elif not of <= sources.get(id(referrer), set()):
                    sources[id(referrer)] = sources.get(id(referrer), set()) | of
                    following.append(referrer)
        frontier = [each for each in following if not sources[id(each)] <= found]
        time.sleep(0)  # let others run
        kept.append(frontier)
    return [task for task in tasks if id(task) in found]


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
