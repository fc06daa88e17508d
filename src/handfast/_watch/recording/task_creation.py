"""The hook: each task that is created while the watch is on knows its place and its time.

Both are in slots of a subclass of Task. There is no done callback and no table of tasks: what has
ended is what was created and is not alive. `python -m benchmarks.compare watch` measures the cost.

A task factory of the program stays where it is, and its tasks get the two as attributes. A task that
is made without the loop, by calling `asyncio.Task`, has neither.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio import AbstractEventLoop, Task, tasks
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from handfast._asyncio_internals import EAGER_TASK_FACTORY
from handfast._census.patch import Patch, call_before, uvloop_patches
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.task_creation import TrackedTask
from handfast._runtime.scope.tasks.task_wrapper import origin_and_start_time
from handfast._watch.recording.places import OFFSETS, PASSED, Place, find_place, place_of_origin

AnyTask = Task[Any]

_getframe = sys._getframe
_clock = time.monotonic


class WatchedTask(Task[Any]):
    """A task with its place and the time of its creation."""

    __slots__ = ("_handfast_created", "_handfast_place")

    _handfast_created: float
    _handfast_place: Place


# What asyncio shows in the repr of a task, in logs and warnings, stays as it was.
WatchedTask.__name__ = WatchedTask.__qualname__ = "Task"
WatchedTask.__module__ = Task.__module__


class WatchedScopeTask(TrackedTask):
    """The same for a task of a `handfast.Scope`."""

    __slots__ = ("_handfast_created", "_handfast_place")


WatchedScopeTask.__name__ = WatchedScopeTask.__qualname__ = TrackedTask.__name__
WatchedScopeTask.__module__ = TrackedTask.__module__


def place_of(task: AnyTask) -> Place | None:
    """The place of a task; None if its creation was not seen."""
    return getattr(task, "_handfast_place", None)


def created_at(task: AnyTask) -> float | None:
    """When a task was created, by `time.monotonic`; None if that was not seen."""
    return getattr(task, "_handfast_created", None)


# --- the hook ------------------------------------------------------------------------------------

# Read in every call: another tool may have patched over our patch, which then stays.
_on = False


def _wrap_create_task(original: Callable[..., AnyTask]) -> Callable[..., AnyTask]:
    """What asyncio's own loops and uvloop's do without a task factory, with our class."""

    def create_task(self: Any, coro: Any, **options: Any) -> AnyTask:
        if not _on:
            return original(self, coro, **options)
        if self.get_task_factory() is not None or self.is_closed() or tasks.Task is not Task:
            return _create_otherwise(self, original, coro, options)
        task = WatchedTask(coro, loop=self, **options)
        if task._source_traceback:  # type: ignore[attr-defined]
            del task._source_traceback[-1]  # type: ignore[attr-defined]
        frame: FrameType | None = _getframe(1)
        while frame is not None and id(frame.f_code) in PASSED:
            frame = frame.f_back
        # The same as `_record`, inlined: two calls fewer for each task.
        if frame is not None:
            code = frame.f_code
            lasti = frame.f_lasti
            entry = OFFSETS.get(id(code) + lasti)
            if entry is not None and entry.code is code and entry.lasti == lasti:
                place = entry.place
                place.created += 1
                task._handfast_place = place
                task._handfast_created = _clock()
                return task
        _record(task, frame, coro, self, _clock())
        return task

    return create_task


def _create_otherwise(
    loop: AbstractEventLoop, original: Callable[..., AnyTask], coro: Any, options: dict[str, Any]
) -> AnyTask:
    """With a task factory; with other tasks than asyncio's own, as nest_asyncio has them, which
    can run inside each other; or on a closed loop, which raises."""
    now = _clock()  # an eager task makes its first step before it is returned
    task: AnyTask
    if loop.get_task_factory() is EAGER_TASK_FACTORY is not None and not loop.is_closed():
        task = WatchedTask(coro, loop=loop, **{"eager_start": True, **options})
    else:
        task = original(loop, coro, **options)
    _record(task, _getframe(2), coro, loop, now)
    return task


def _wrap_new_task(original: Callable[..., AnyTask]) -> Callable[..., AnyTask]:
    """For the runtime, which creates its tasks without the loop and offers this hook."""
    make = WatchedScopeTask if original is TrackedTask else original

    def new_task(coro: Any, **options: Any) -> AnyTask:
        if not _on:
            return original(coro, **options)
        now = _clock()
        task = make(coro, **options)
        _record(task, _getframe(1), coro, task.get_loop(), now)
        return task

    return new_task


def _record(
    task: AnyTask, frame: FrameType | None, coro: Any, loop: AbstractEventLoop, now: float
) -> None:
    """Note the place and the time on a task, if it takes attributes."""
    if place_of(task) is not None:  # a factory that has called the loop's method
        return
    while frame is not None and id(frame.f_code) in PASSED:
        frame = frame.f_back
    entry = None if frame is None else OFFSETS.get(id(frame.f_code) + frame.f_lasti)
    if (
        entry is not None
        and frame is not None
        and entry.code is frame.f_code
        and entry.lasti == frame.f_lasti
    ):
        place = entry.place
    else:
        place = _slow_place(frame, coro, loop)
    place.created += 1
    try:
        # Not setattr: a class of the program may override it.
        object.__setattr__(task, "_handfast_place", place)
        object.__setattr__(task, "_handfast_created", now)
    except (AttributeError, TypeError):
        place.created -= 1  # it would count as created and never as alive


def _slow_place(frame: FrameType | None, coro: Any, loop: AbstractEventLoop) -> Place:
    origin, _ = origin_and_start_time(coro)
    if origin is not None:  # a wrapper of the runtime, perhaps of a call from another thread
        return place_of_origin(origin)
    return find_place(frame, coro, loop.is_running())


# --- on and off ----------------------------------------------------------------------------------


class _Hook:
    """A patch that can be installed again after another tool has patched over it."""

    def __init__(self, patch: Patch, name: str) -> None:
        self._patch = patch
        self.where: Any = patch.where
        self._name = name
        self._original = getattr(self.where, name)
        patch.install()

    def remove(self) -> bool:
        """Whether the attribute is as it was."""
        self._patch.uninstall()
        return getattr(self.where, self._name) is self._original


_hooks: list[_Hook] = []


def switch_on() -> None:
    """Record tasks from now on."""
    global _on
    for patch, name in _patches():
        if all(hook.where is not patch.where for hook in _hooks):
            _hooks.append(_Hook(patch, name))
    _on = True


def patch_late_imports() -> None:
    """Patch uvloop if it was imported since."""
    if _on and "uvloop" in sys.modules:
        switch_on()


def switch_off() -> None:
    """Record no more tasks. Those that were recorded keep their places."""
    global _on
    _on = False
    _hooks[:] = [hook for hook in _hooks if not hook.remove()]


def is_on() -> bool:
    """Whether tasks are recorded."""
    return _on


def _patches() -> Iterator[tuple[Patch, str]]:
    yield Patch(asyncio.BaseEventLoop, "create_task", _wrap_create_task), "create_task"
    yield Patch(task_creation, "new_task", _wrap_new_task), "new_task"
    # A program imports uvloop before it makes a runner, and perhaps after the watch began.
    late = call_before(lambda *_, **__: patch_late_imports())
    yield Patch(asyncio.Runner, "__init__", late), "__init__"
    for patch in uvloop_patches(("create_task", _wrap_create_task)):
        yield patch, "create_task"
