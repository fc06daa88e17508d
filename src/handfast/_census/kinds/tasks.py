"""Pending tasks, on every event loop of the process.

A task that was garbage collected while it was pending is found by `unread_errors`.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from inspect import CORO_CLOSED, getcoroutinestate
from types import CoroutineType
from typing import Any

from handfast import _await_stack as stacks
from handfast._census import creation_log
from handfast._census.creation import Creation
from handfast._census.event_loops import every_task, is_judged_elsewhere, remember
from handfast._census.kind import Kind
from handfast._census.known_libraries import library_that_keeps
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, uvloop_patches
from handfast._runtime.hosting.owner_task import owner_behind
from handfast._runtime.scope.tasks import task_creation
from handfast._runtime.scope.tasks.task_wrapper import origin_and_start_time

# The coroutine type of a task in which an event loop closes a generator that was dropped.
_FINALIZER = "async_generator_athrow"


def pending(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each pending task, of one loop or of all."""
    for listed in every_task(loop):
        if listed.done() or is_judged_elsewhere(listed.get_loop()):
            continue
        # The runtime lists a stand-in for a task that owns a resource: report the owner.
        task = owner_behind(listed)
        if not task.done() and not _is_closed(task):
            yield live_task(task, listed)


def _is_closed(task: Task[Any]) -> bool:
    """Whether the program has closed the coroutine of a task that has never run: such a task does
    nothing any more, and a turn of its loop would make an error of it. tornado ends one so."""
    coro = task.get_coro()
    return isinstance(coro, CoroutineType) and getcoroutinestate(coro) == CORO_CLOSED


def live_task(task: Task[Any], listed: Task[Any] | None = None) -> LiveObject:
    """A pending task; `listed` is the one on asyncio's list, if that is another."""
    return LiveObject(
        check="tasks",
        code="HF102",
        key=("task", id(task)),
        what=f"task {task.get_name()!r} running {name_of(task)}",
        ended=task.done,
        waiting_at=partial(stacks.await_chain, task),
        creation=creation_of_task(task),
        owner=owner_in_context(task),
        loop=task.get_loop(),
        target=task,
        task_to_cancel=listed or task,
        ends_by_itself=type(coroutine_of(task)).__name__ == _FINALIZER,
        library=library_that_keeps("task", name_of(listed or task)),
    )


def name_of(task: Task[Any]) -> str:
    """The name of what a task runs."""
    coro = coroutine_of(task)
    return getattr(coro, "__qualname__", None) or type(coro).__name__


def coroutine_of(task: Task[Any]) -> Any:
    """What a task runs. On 3.12.1 `get_coro` of a finished eager task crashes the interpreter."""
    return None if task.done() else task.get_coro()


def creation_of_task(task: Task[Any]) -> Creation | None:
    """The creation as recorded, or else as the runtime knows it."""
    creation = creation_log.creation_of(task)
    if creation is None and not task.done():
        # Created before the recording: no owner of now owns it.
        return _certified(task_creation.wrapper_of(task), None)
    return creation


def _certified(coro: Any, owner: object) -> Creation | None:
    """The creation that the runtime keeps itself; it does not know the owner."""
    origin, _ = origin_and_start_time(coro)
    if origin is None:
        return None
    return Creation(origin.code, origin.lasti, origin.code, origin.lasti, owner)


def owner_in_context(task: Task[Any]) -> object:
    """The owner of a task whose creation was not recorded. A library may create tasks without the
    loop's `create_task`, as aiohttp does for each connection; since 3.12 such a task shows its
    context, which names the owner."""
    context: Callable[[], Context] | None = getattr(task, "get_context", None)
    return context().get(creation_log.OWNER) if context is not None else None


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the creation of tasks."""
    yield Patch(asyncio.BaseEventLoop, "create_task", _wrap_create_task)
    yield Patch(asyncio.BaseEventLoop, "call_soon_threadsafe", _wrap_call)
    yield from uvloop_patches(
        ("create_task", _wrap_create_task), ("call_soon_threadsafe", _wrap_call)
    )
    # The runtime creates its tasks without the loop, and offers this hook.
    yield Patch(task_creation, "new_task", _around_task)


def _wrap_create_task(create_task: Callable[..., Task[Any]]) -> Callable[..., Task[Any]]:
    def wrapper(self: AbstractEventLoop, coro: Any, **options: Any) -> Task[Any]:
        if is_judged_elsewhere(self):
            return create_task(self, coro, **options)
        return _create(creation_log.created_here(), partial(create_task, self), coro, options)

    return wrapper


def _wrap_call(call_soon_threadsafe: Callable[..., Any]) -> Callable[..., Any]:
    """`run_coroutine_threadsafe` creates its task in a callback, whose frames lead nowhere."""

    def wrapper(self: AbstractEventLoop, callback: Any, *args: Any, **options: Any) -> Any:
        if options.get("context") is not None:
            return call_soon_threadsafe(self, callback, *args, **options)
        # The callback may run in the phase of another owner.
        owner = creation_log.OWNER.set(creation_log.inherited(creation_log.current_owner()))
        requested = creation_log.REQUESTED.set(creation_log.created_here())
        try:
            return call_soon_threadsafe(self, callback, *args, **options)
        finally:
            creation_log.REQUESTED.reset(requested)
            creation_log.OWNER.reset(owner)

    return wrapper


def _around_task(make: Callable[..., Task[Any]]) -> Callable[..., Task[Any]]:
    def wrapper(coro: Any, **options: Any) -> Task[Any]:
        owner = creation_log.current_owner()
        creation = _certified(coro, owner) or creation_log.created_here()
        return _create(creation, make, coro, options)

    return wrapper


def _create(
    creation: Creation | None, make: Callable[..., Task[Any]], coro: Any, options: dict[str, Any]
) -> Task[Any]:
    """Create the task in a context that names its owner: an eager task runs before this returns."""
    if creation is None or library_that_keeps("task", getattr(coro, "__qualname__", "")):
        task = make(coro, **options)
    elif (context := options.get("context")) is not None:
        creation_log.set_owner_in(context, creation.owner)
        task = make(coro, **options)
    else:
        before = creation_log.OWNER.set(creation_log.inherited(creation.owner))
        try:
            task = make(coro, **options)
        finally:
            creation_log.OWNER.reset(before)
    creation_log.store(task, creation)
    remember(task)
    return task


KIND = Kind("tasks", ("HF102", "HF501"), pending, patches, per_loop=True)
