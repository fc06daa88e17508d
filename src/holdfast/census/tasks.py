"""The tasks that have not ended, on every loop of the process.

asyncio's own list is read; where the runtime has put a keeper there, its owner is told. A task
that was collected while it was pending is a loss that only the loop's exception handler hears of:
that is told in `errors`.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Hashable, Iterator
from contextvars import Context
from functools import partial
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth
from holdfast.census.hooks import Hook
from holdfast.census.thing import Thing
from holdfast.runtime import roster, scope, stacks, submission
from holdfast.runtime.keeping import owner_behind
from holdfast.runtime.tracking import certificate

__all__ = [
    "TaskAlive",
    "all_alive",
    "coroutine_of",
    "every_task",
    "hooks",
    "is_looked_after",
    "members_of",
    "name_of",
    "owner_of",
]

# anyio runs every test and fixture in one task of its own, which belongs to nobody.
_FOREMEN = {"TestRunner._run_tests_and_fixtures"}
# What an event loop starts for a generator that nobody iterates any more.
_FINALIZER = "async_generator_athrow"
# Eager tasks that ended before they were back: asyncio has struck them off its lists.
_AT_ONCE: weakref.WeakSet[Task[Any]] = weakref.WeakSet()


class TaskAlive(Thing):
    """A task that has not ended."""

    __slots__ = ("_runs", "listed", "task")

    check = "tasks"

    def __init__(self, task: Task[Any], listed: Task[Any] | None = None) -> None:
        super().__init__(birth_of(task), task.get_loop())
        self.task = task
        self.listed = listed or task
        """The task on asyncio's list: the one to cancel."""
        # Now: a task that has ended does not tell any more.
        self._runs = name_of(task)

    @property
    def owner(self) -> object:
        return owner_of(self.task, self.birth)

    @property
    def key(self) -> Hashable:
        return ("task", id(self.task))

    @property
    def code(self) -> str:
        return "HF102"

    @property
    def what(self) -> str:
        return f"task {self.task.get_name()!r} running {self._runs}"

    def stands(self) -> tuple[str, ...]:
        return stacks.await_chain(self.task)

    def over(self) -> bool:
        return self.task.done()

    @property
    def passing(self) -> bool:
        """The closing of a generator, begun by the loop itself."""
        return type(coroutine_of(self.task)).__name__ == _FINALIZER


def all_alive(loop: AbstractEventLoop | None = None) -> Iterator[TaskAlive]:
    """Each task that has not ended, of one loop or of all."""
    for task in every_task():
        if task.done() or (loop is not None and task.get_loop() is not loop):
            continue
        if is_looked_after(task.get_loop()):
            continue
        if name_of(task) not in _FOREMEN and not (owner := owner_behind(task)).done():
            yield TaskAlive(owner, task)


def every_task() -> list[Task[Any]]:
    """All tasks that still exist, also those that have ended."""
    tasks: Any = asyncio.tasks
    found: dict[int, Task[Any]] = {}
    lists = [
        getattr(tasks, name, ()) for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
    ]
    for each in (*lists, _AT_ONCE):
        for task in members_of(each):
            found[id(task)] = task
    return list(found.values())


def members_of(weak: Any) -> list[Any]:
    """What is in a weak set, also while other threads change it."""
    if not weak:  # most of them, most of the time; and to go through one is slow
        return []
    while True:
        try:
            return list(weak)
        except RuntimeError:  # changed by another thread meanwhile (#79151)
            continue


def is_looked_after(loop: AbstractEventLoop) -> bool:
    """Whether a loop says that somebody else judges what is left on it, as the explorer does."""
    return getattr(loop, "looked_after", False)


def name_of(task: Task[Any]) -> str:
    """What a task runs, in words."""
    coro = coroutine_of(task)
    named = getattr(coro, "__qualname__", None)
    return named or type(coro).__name__


def coroutine_of(task: Task[Any]) -> Any:
    """What a task runs. On 3.12.1 asking an ended eager task for it ends the interpreter."""
    return None if task.done() else task.get_coro()


def birth_of(task: Task[Any]) -> Birth | None:
    """As it was noted; else as the runtime knows it."""
    birth = births.of(task)
    if birth is None and (coro := coroutine_of(task)) is not None:
        return _certified(coro, None)  # nobody asked at the time: it is none of those who do now
    return birth


def _certified(coro: Any, owner: object) -> Birth | None:
    """The birth that the runtime has noted itself; the owner it does not know."""
    origin, _ = certificate(coro)
    if origin is None:
        return None
    return Birth(origin.code, origin.lasti, origin.code, origin.lasti, owner)


def owner_of(task: Task[Any], birth: Birth | None) -> object:
    """As it was noted. Nobody sees a task that a library makes past the loop, as aiohttp does for
    each connection; but its context came from somebody, and from 3.12 on a task shows that."""
    if birth is not None:
        return birth.owner
    context: Callable[[], Context] | None = getattr(task, "get_context", None)
    return context().get(births.OWNER) if context is not None else None


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where tasks are born."""
    yield Hook(asyncio.BaseEventLoop, "create_task", _around_create_task)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "create_task", _around_create_task)
        yield Hook(uvloop.Loop, "call_soon_threadsafe", _around_call)
    yield Hook(asyncio.BaseEventLoop, "call_soon_threadsafe", _around_call)
    # The runtime's short ways past the loop.
    for short_way in (roster, scope, submission):
        yield Hook(short_way, "Task", _around_task)


def _around_create_task(create_task: Callable[..., Task[Any]]) -> Callable[..., Task[Any]]:
    def noted(self: AbstractEventLoop, coro: Any, **options: Any) -> Task[Any]:
        if is_looked_after(self):
            return create_task(self, coro, **options)
        return _born(births.born(), partial(create_task, self), coro, options)

    return noted


def _around_call(call_soon_threadsafe: Callable[..., Any]) -> Callable[..., Any]:
    """`run_coroutine_threadsafe` has the task made in a callback, where nobody is to be seen."""

    def noted(self: AbstractEventLoop, callback: Any, *args: Any, **options: Any) -> Any:
        if options.get("context") is not None:
            return call_soon_threadsafe(self, callback, *args, **options)
        # It runs when somebody else may be at work.
        owner = births.OWNER.set(births.handed_down(births.owner_now()))
        asked = births.ASKED.set(births.born())
        try:
            return call_soon_threadsafe(self, callback, *args, **options)
        finally:
            births.ASKED.reset(asked)
            births.OWNER.reset(owner)

    return noted


def _around_task(make: Callable[..., Task[Any]]) -> Callable[..., Task[Any]]:
    def noted(coro: Any, **options: Any) -> Task[Any]:
        return _born(_certified(coro, births.owner_now()) or births.born(), make, coro, options)

    return noted


def _born(
    birth: Birth | None, make: Callable[..., Task[Any]], coro: Any, options: dict[str, Any]
) -> Task[Any]:
    """Make the task, in a context that says whose it is: an eager one runs before it is back."""
    if birth is None or getattr(coro, "__qualname__", None) in _FOREMEN:
        task = make(coro, **options)
    elif (context := options.get("context")) is not None:
        _hand_down(context, birth.owner)
        task = make(coro, **options)
    else:
        before = births.OWNER.set(births.handed_down(birth.owner))
        try:
            task = make(coro, **options)
        finally:
            births.OWNER.reset(before)
    births.register(task, birth)
    if task.done():
        _AT_ONCE.add(task)
    return task


def _hand_down(context: Context, owner: object) -> None:
    try:
        context.run(births.OWNER.set, births.handed_down(owner))
    except RuntimeError:  # it is entered already: whoever did that has seen to it
        pass
