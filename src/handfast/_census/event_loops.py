"""The event loops of the process and the tasks on them, as far as they can be found.

A loop is found if it was created during a recording, if one of its tasks still exists, or if it
runs now, in this thread or another.

Until Python 3.13 asyncio's own weak sets hold every task. Since 3.14 they do not (CPython #107803):
pending tasks are listed loop by loop, and finished ones are remembered from their creation.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from handfast._asyncio_internals import (
    TASKS_ARE_IN_WEAK_SETS,
    is_hidden,
    pending_tasks,
    running_loop,
    snapshot,
    task_sets,
)
from handfast._census import creation_log
from handfast._census.patch import Patch, call_after, uvloop_patches

_CREATED: weakref.WeakSet[AbstractEventLoop] = weakref.WeakSet()
# Tasks that asyncio does not list, or not once they have ended: eager tasks that ended before
# `create_task` returned; since 3.14 all that were created during a recording.
_REMEMBERED: weakref.WeakSet[Task[Any]] = weakref.WeakSet()


def is_judged_elsewhere(loop: AbstractEventLoop) -> bool:
    """Whether another tool judges what is left on this loop: the explorer says so of its loops."""
    return getattr(loop, "judged_elsewhere", False)


def known(loop: AbstractEventLoop | None = None) -> list[AbstractEventLoop]:
    """`loop` alone if it is given; otherwise each loop that can be found."""
    found = {loop} if loop is not None else _all_known()
    return [each for each in found if not is_judged_elsewhere(each)]


def _all_known() -> set[AbstractEventLoop]:
    found = set(snapshot(_CREATED))
    found.update(task.get_loop() for task in _listed())
    running = running_loop()
    if running is not None:
        found.add(running)
    if not TASKS_ARE_IN_WEAK_SETS:
        # No list of all tasks leads to the loops that were created before the recording.
        found.update(_running_in_threads() if creation_log.is_recording() else _in_memory())
    return found


def _running_in_threads() -> Iterator[AbstractEventLoop]:
    """The loops that run in any thread, found by their `run_forever` frames."""
    for outermost in sys._current_frames().values():
        frame: FrameType | None = outermost
        while frame is not None:
            if frame.f_code.co_name == "run_forever":
                loop = frame.f_locals.get("self")
                if isinstance(loop, AbstractEventLoop):
                    yield loop
            frame = frame.f_back


def _in_memory() -> Iterator[AbstractEventLoop]:
    """The loops that the garbage collector tracks. Slow: only used if nothing was recorded."""
    # By type: `isinstance` reads `__class__`, which for a proxy may run any code.
    return (each for each in gc.get_objects() if issubclass(type(each), AbstractEventLoop))


def remember(task: Task[Any]) -> None:
    """Find a new task in `every_task` also after it has ended and asyncio no longer lists it."""
    if not TASKS_ARE_IN_WEAK_SETS or task.done():
        _REMEMBERED.add(task)


def every_task(loop: AbstractEventLoop | None = None) -> list[Task[Any]]:
    """All tasks that still exist, also those that have ended; of `loop` alone if it is given.

    Since 3.14, one that was created without the loop's `create_task` (`asyncio.Task(...)`) is found
    while it is pending, but not after it has ended.
    """
    if TASKS_ARE_IN_WEAK_SETS:
        tasks = _listed()
    else:
        tasks = [task for task in _listed() if task.done() and not is_hidden(task)]
        tasks += (task for each in known(loop) for task in pending_tasks(each))
    found = {id(task): task for task in tasks if loop is None or task.get_loop() is loop}
    return list(found.values())


def _listed() -> list[Task[Any]]:
    return [task for each in (_REMEMBERED, *task_sets()) for task in snapshot(each)]


def not_listed(what: str, attribute: str, loop: AbstractEventLoop | None) -> Iterator[str]:
    """A line for each class of open loops without the attribute that lists `what`."""
    hidden = (
        each
        for each in known(loop)
        if not each.is_closed() and not isinstance(getattr(each, attribute, None), Iterable)
    )
    for name in sorted({_name(each) for each in hidden}):
        yield f"{what} on a {name} cannot be seen"


def _name(loop: AbstractEventLoop) -> str:
    package = type(loop).__module__.partition(".")[0]
    return "uvloop loop" if package == "uvloop" else type(loop).__name__


def patches() -> Iterator[Patch]:
    """Record the creation of event loops."""
    record = call_after(lambda loop, *_, **__: _CREATED.add(loop))
    yield Patch(asyncio.BaseEventLoop, "__init__", record)
    yield from uvloop_patches(("__init__", record))
