"""Which tasks wait for a task, and for those, and so on.

A close by a task for which a task of the scope waits would never end: the close waits for that
task, and that task for the closer. And while a scope drains, such a task is part of its work.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from inspect import CO_COROUTINE
from types import FrameType
from typing import TYPE_CHECKING, Any

from handfast._asyncio_internals import done_callbacks, parent_of_group
from handfast._await_stack import await_frames
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast._runtime.scope.tasks.task_wrapper import is_wrapper
from handfast._runtime.uncancellable import joiner_of

if TYPE_CHECKING:
    from handfast._runtime.scope.tasks.task_registry import TaskRegistry

AnyTask = asyncio.Task[Any]


def ancestors(task: AnyTask) -> Iterator[AnyTask]:
    """The task itself, and every task that cannot end before it."""
    todo = [task]
    seen: set[int] = set()
    while todo:
        current = todo.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            todo += _waiters(current)


def registry_of(task: AnyTask) -> TaskRegistry | None:
    """The registry that has this task, read out of the frame of the wrapper that the task runs.

    It is stored nowhere else: it is needed rarely, and would cost each task a slot.
    """
    for frame in _frames(task):
        if is_wrapper(frame.f_code):
            registry: TaskRegistry | None = frame.f_locals.get("registry")
            return registry
    return None


def runs_inside(registry: TaskRegistry) -> bool:
    """Whether this call is made in a step of one of its tasks. The running task need not be that:
    an eager one makes its first step inside of the call that creates it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_wrapper(frame.f_code) and frame.f_locals.get("registry") is registry:
            return True
        frame = frame.f_back
    return False


def starts_eagerly(task: AnyTask) -> bool:
    """Whether the running task makes its first step inside of the coroutine that creates it."""
    # Not all frames in a local variable of this one, which is the first of them: a reference cycle.
    frame = deque(_running_frames(wrapper_of(task)), maxlen=1).pop().f_back
    while frame is not None:
        if frame.f_code.co_flags & CO_COROUTINE:
            return True
        frame = frame.f_back
    return False


def _frames(task: AnyTask) -> Iterable[FrameType]:
    if task.done():
        return ()
    if task is not asyncio.current_task(task.get_loop()):
        return await_frames(wrapper_of(task))
    return _running_frames(wrapper_of(task))


def _running_frames(coro: Any) -> Iterator[FrameType]:
    """The frames of the running task, innermost first. Those above the frame of its coroutine
    belong to the loop; or to another task, in whose step an eager one makes its first."""
    frame: FrameType | None = sys._getframe(1)
    outermost = getattr(coro, "cr_frame", None)
    while frame is not None:
        yield frame
        frame = None if frame is outermost else frame.f_back


def _waiters(task: AnyTask) -> Iterator[AnyTask]:
    yield from _waiters_of_future(task)
    if (joiner := joiner_of(task)) is not None:
        yield joiner
    if (registry := registry_of(task)) is not None:
        yield from registry.joiners


def _waiters_of_future(future: asyncio.Future[Any]) -> Iterator[AnyTask]:
    """`asyncio.wait` and `shield` are not among them: a cancel ends these at once."""
    for callback, _ in done_callbacks(future):
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, asyncio.Task):  # `await`
            yield owner
        elif isinstance(owner, asyncio.TaskGroup):
            parent = parent_of_group(owner)
            if parent is not None:
                yield parent
        elif (waiting := _future_behind(callback)) is not None:
            yield from _waiters_of_future(waiting)


def _future_behind(callback: Any) -> asyncio.Future[Any] | None:
    """The future of a `gather`, or of a `wait_for` of 3.11, that the callback resolves."""
    if isinstance(callback, functools.partial):
        first = callback.args[0] if callback.args else None
        name = getattr(callback.func, "__name__", "")
        return first if name == "_release_waiter" and isinstance(first, asyncio.Future) else None
    if getattr(callback, "__qualname__", "").startswith("gather."):
        cells = (cell.cell_contents for cell in callback.__closure__ or ())
        return next((value for value in cells if type(value).__name__ == "_GatheringFuture"), None)
    return None
