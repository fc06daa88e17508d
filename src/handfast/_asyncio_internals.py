"""Every private name of asyncio that the package uses, once, with the versions that have it.

asyncio has no public way to read most of this: which tasks have ended with an error that was
never read, which timers are armed, which transports are open. A private name may be missing in
a new Python, so each function here says what it returns then; `missing_names` lists the names
that this Python does not have, and the census reports what it cannot see without them.

This is the lowest layer: nothing of the package is imported here.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
import sys
import warnings
import weakref
from asyncio import AbstractEventLoop, Task, base_events, selector_events, tasks
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import Context
from functools import partial
from types import CodeType
from typing import Any, TypeVar

T = TypeVar("T")

# --- versions ----------------------------------------------------------------------------------

TESTED_PYTHONS: tuple[tuple[int, int], ...] = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))
"""The Python versions with which the tests run (`PYTHONS` in noxfile.py)."""

_warned = False


class UntestedPythonWarning(RuntimeWarning):
    """This Python is newer than any with which the tools were tested."""


def untested_python(version: tuple[int, int] | None = None) -> str | None:
    """What to say about a Python that is newer than any tested one; None for a tested one."""
    major, minor = version or sys.version_info[:2]
    newest = TESTED_PYTHONS[-1]
    if (major, minor) <= newest:
        return None
    return (
        f"Python {major}.{minor} is newer than the newest tested version, "
        f"{newest[0]}.{newest[1]}: asyncio may have changed in ways that hide problems"
    )


def warn_if_untested(stacklevel: int = 2) -> None:
    """Warn about an untested Python, once in a process."""
    global _warned
    message = untested_python()
    if message is not None and not _warned:
        _warned = True  # first: under `-W error` the warning is raised, and only once
        warnings.warn(message, UntestedPythonWarning, stacklevel=stacklevel + 1)


# --- coroutine functions -----------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])


def coroutine_function(function: F) -> F:
    """Mark a plain function that returns a coroutine as a coroutine function.

    Frameworks ask for it: Starlette would call an `on_shutdown` handler and not await what it
    returns. 3.11 has only the mark of asyncio's own `iscoroutinefunction`.
    """
    mark: Callable[[F], F] | None = getattr(inspect, "markcoroutinefunction", None)
    if mark is not None:
        return mark(function)
    function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    return function


# --- the running loop --------------------------------------------------------------------------

# In `asyncio.__all__` despite its underscore, in all versions. An alias and not a function:
# `Scope.spawn` and `KeyedTasks` call it on their fast paths.
running_loop: Callable[[], AbstractEventLoop | None] = asyncio._get_running_loop

# It makes a system call each time, to notice a fork. The thread of a stock loop is in `_thread_id`.
RUNNING_LOOP_IS_SLOW = sys.version_info < (3, 12)


def run_once_code() -> CodeType | None:
    """The code of the loop's innermost frame, `_run_once` (all versions), if it has one."""
    return getattr(getattr(asyncio.BaseEventLoop, "_run_once", None), "__code__", None)


def loop_codes() -> list[CodeType]:
    """The code of the frames that run a loop: `_run_once` and what is around it. On uvloop's, which
    is compiled, only those of `asyncio.Runner` are there (all versions)."""
    base, runner = asyncio.BaseEventLoop, asyncio.Runner
    functions = [base.run_forever, base.run_until_complete, runner.run]
    once = run_once_code()
    return [*(function.__code__ for function in functions), *([] if once is None else [once])]


def creates_plain_tasks(loop: AbstractEventLoop) -> bool:
    """Whether `create_task` of this loop, without a task factory, only creates a Task: that of
    asyncio's own loops does, and that of uvloop's."""
    kinds = (asyncio.BaseEventLoop, getattr(sys.modules.get("uvloop"), "Loop", None))
    return type(loop).create_task in [getattr(kind, "create_task", None) for kind in kinds]


EAGER_TASK_FACTORY: Any = getattr(asyncio, "eager_task_factory", None)
"""From 3.12 on; None before."""

# Factories of asyncio's own, which take `name=` in all versions.
_STOCK_FACTORIES = (None, EAGER_TASK_FACTORY)


def create_named_task(
    loop: AbstractEventLoop,
    coro: Coroutine[Any, Any, T],
    name: str,
    context: Context | None = None,
) -> Task[T]:
    """`loop.create_task(coro, name=name)`, also with a task factory that takes no `name`.

    Until 3.13.2 asyncio set the name itself after the factory had returned. Since then it
    passes `name` on, and a factory `(loop, coro)` or `(loop, coro, context)` fails (#128307).
    """
    if loop.get_task_factory() in _STOCK_FACTORIES:
        return loop.create_task(coro, name=name, context=context)
    # A factory `(loop, coro)` is right as long as no caller wants a context.
    task = loop.create_task(coro) if context is None else loop.create_task(coro, context=context)
    task.set_name(name)
    return task


# --- the lists of tasks ------------------------------------------------------------------------

# Until 3.13 asyncio keeps all tasks, ended ones too, in weak sets. Since 3.14 tasks written in C
# are in linked lists of C, one for each thread, and only while they are pending (#107803,
# #128002); the weak sets have only tasks of other implementations.
TASKS_ARE_IN_WEAK_SETS: bool = sys.version_info < (3, 14)

# Tasks that `unregister_task` has hidden. Since 3.14 asyncio itself forgets a task that has
# ended, so this is the only place that knows which of the ended ones were hidden.
_HIDDEN: weakref.WeakSet[Task[Any]] = weakref.WeakSet()


def task_sets() -> list[Iterable[Task[Any]]]:
    """asyncio's own weak sets of tasks: `_all_tasks` (3.11), `_scheduled_tasks` and
    `_eager_tasks` (from 3.12 on)."""
    names = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
    return [getattr(tasks, name, ()) for name in names]


def pending_tasks(loop: AbstractEventLoop) -> set[Task[Any]]:
    """The pending tasks of `loop`, from any thread, those made in other threads among them.

    Since 3.14 `asyncio.all_tasks`, called for the loop that runs in this thread, reads only the
    list of this thread, and a task is in the list of the thread that made it (#128002). For any
    other loop it reads the lists of all threads: so the running loop is taken off meanwhile.
    """
    set_running_loop = getattr(asyncio, "_set_running_loop", None)
    if TASKS_ARE_IN_WEAK_SETS or running_loop() is not loop or set_running_loop is None:
        return asyncio.all_tasks(loop)
    set_running_loop(None)
    try:
        return asyncio.all_tasks(loop)
    finally:
        set_running_loop(loop)


def task_references() -> list[Any]:
    """Weak references to the tasks in asyncio's weak sets, and the tasks in its plain ones, in one
    step for each set: a thread can read them while loops run. Those of other implementations only
    since 3.14: see `tasks_of`."""
    found: list[Any] = []
    for each in task_sets():
        # `list(weak_set)` would run Python code for each member, and be disturbed by changes.
        found += list(getattr(each, "data", each))
    return found


def task_kinds() -> tuple[type, ...]:
    """The classes of asyncio's tasks: the one written in C, and the other one (`_PyTask`, all
    versions), by which nest_asyncio replaces `asyncio.Task`."""
    return tuple({Task, getattr(tasks, "_PyTask", Task)})


def unregister_task(task: Task[Any]) -> None:
    """Hide a task from `asyncio.all_tasks`, and so from the teardown of `asyncio.run`, which
    cancels and awaits every task that it sees (`_unregister_task`, in `asyncio.tasks.__all__`,
    all versions). Without that function the task stays visible."""
    unregister = getattr(asyncio, "_unregister_task", None)
    if unregister is not None:
        unregister(task)
        _HIDDEN.add(task)


def forget_ended_tasks(ended: Iterable[Task[Any]]) -> None:
    """Take tasks that have ended out of asyncio's weak sets, as it does itself since 3.14.

    `asyncio.all_tasks` looks at every task that was not collected yet, of whatever loop.
    """
    unregister = getattr(asyncio, "_unregister_task", None)
    if TASKS_ARE_IN_WEAK_SETS and unregister is not None:
        for task in ended:
            unregister(task)


def is_hidden(task: Task[Any]) -> bool:
    """Whether `unregister_task` was called for a task."""
    return task in _HIDDEN


def snapshot(items: Any) -> list[Any]:
    """The members of a weak set or a view, even while other threads change it."""
    if not items:  # most of them, most of the time; iterating a weak set is slow
        return []
    while True:
        try:
            return list(items)
        except RuntimeError:  # changed size during iteration, by another thread (#80788)
            continue


# --- one task or future ------------------------------------------------------------------------


def has_unread_error(task: Task[Any], default: bool = False) -> bool:
    """Whether a task failed and no one has retrieved the exception. `exception()` would count as
    retrieving it (`_log_traceback`, all versions)."""
    return bool(getattr(task, "_log_traceback", default))


def error_of(task: Task[Any]) -> BaseException | None:
    """The exception of a task, without marking it as retrieved (`_exception`, all versions)."""
    error = getattr(task, "_exception", None)
    return error if isinstance(error, BaseException) else None


def mute_destroyed_warning(task: Task[Any] | None) -> None:
    """Suppress "Task was destroyed but it is pending" for a task that was reported already
    (`_log_destroy_pending`, all versions)."""
    setattr(task, "_log_destroy_pending", False)  # noqa: B010 - not in the type stubs


def awaited_future(task: Task[Any]) -> Any:
    """The future for which a suspended task waits (`_fut_waiter`, all versions); or None."""
    return getattr(task, "_fut_waiter", None)


def children_of(future: Any) -> list[Any]:
    """The futures that a `gather` waits for (`_GatheringFuture._children`, all versions); of any
    other future none."""
    is_gather = type(future) is getattr(tasks, "_GatheringFuture", None)
    return list(getattr(future, "_children", ())) if is_gather else []


def futures_of_wait(running: Any) -> tuple[list[asyncio.Future[Any]], bool]:
    """What is left of the futures of this suspended coroutine, if it is that of `asyncio.wait` without
    a time-out (`tasks._wait`, all versions); and whether it waits for all of them."""
    code = getattr(getattr(asyncio.tasks, "_wait", None), "__code__", None)
    if code is None or getattr(running, "cr_code", None) is not code or running.cr_frame is None:
        return [], False
    values = running.cr_frame.f_locals
    if values.get("timeout") is not None:
        return [], False
    left = [future for future in values.get("fs", ()) if not future.done()]
    return left, values.get("return_when") == asyncio.ALL_COMPLETED


def parent_of_group(group: asyncio.TaskGroup) -> Task[Any] | None:
    """The task in the block of a task group (`_parent_task`, all versions)."""
    return getattr(group, "_parent_task", None)


def done_callbacks(task: asyncio.Future[Any]) -> Iterable[Any]:
    """The callbacks of a task with their contexts (`_callbacks`, all versions)."""
    return getattr(task, "_callbacks", None) or ()


def callback_package(callback: object) -> str:
    """The package that has added a done callback. "asyncio" for code that waits for the task with
    `await`, `wait`, `gather` or `wrap_future`: its callbacks are methods of the waiting task, or
    functions of asyncio's modules (all versions)."""
    while isinstance(callback, partial):
        callback = callback.func
    if isinstance(getattr(callback, "__self__", None), Task):
        return "asyncio"
    return (getattr(callback, "__module__", None) or "").partition(".")[0]


# --- handles and loops -------------------------------------------------------------------------


def timers_of(loop: AbstractEventLoop) -> tuple[Any, ...]:
    """The timers of a loop, cancelled ones among them (`_scheduled`, all versions; not uvloop, and
    trio-asyncio replaces it by an object that cannot be iterated)."""
    timers = getattr(loop, "_scheduled", ())
    return tuple(timers) if isinstance(timers, Iterable) else ()


def is_scheduled(timer: Any) -> bool:
    """Whether a timer is still in its loop's heap (`_scheduled`, all versions)."""
    return bool(getattr(timer, "_scheduled", False))


def callback_of(handle: Any) -> Any:
    """What a handle calls; None after a cancel (`_callback`, all versions)."""
    return getattr(handle, "_callback", None)


def arguments_of(handle: Any) -> tuple[Any, ...]:
    """The arguments of that call (`_args`, all versions)."""
    return getattr(handle, "_args", None) or ()


def async_generators_of(loop: AbstractEventLoop) -> list[Any]:
    """The async generators that were started on a loop (`_asyncgens`, all versions; not uvloop)."""
    return snapshot(getattr(loop, "_asyncgens", ()))


def transports_of(loop: Any) -> list[Any]:
    """The socket transports of a selector loop (`_transports`, all versions)."""
    return snapshot(getattr(loop, "_transports", {}).values())


def watched_handles(loop: Any) -> list[Any]:
    """The handles that a selector loop calls for its sockets (`_selector`, all versions; None
    once the loop is closed). A test suite may replace it by a mock, as that of aiostream does."""
    selector = getattr(loop, "_selector", None)
    watched = selector.get_map() if selector is not None else None
    entries = snapshot(watched.values()) if isinstance(watched, Mapping) else []
    return [handle for entry in entries for handle in entry.data or () if handle is not None]


def loop_of(transport: Any) -> Any:
    """The loop of a transport or a server (`_loop`, all versions)."""
    return getattr(transport, "_loop", None)


def server_of(transport: Any) -> Any:
    """The server that accepted a transport; None for a client's (`_server`, all versions)."""
    return getattr(transport, "_server", None)


def detach_selector(loop: AbstractEventLoop) -> bool:
    """In a forked child: give the loop of the parent a selector that watches nothing.

    The kernel's epoll object is shared with the parent, which would no longer be woken once the
    child has removed a socket from it, as `close` does (#66197). False if the loop has none
    (`_selector`, all versions; not uvloop).
    """
    if getattr(loop, "_selector", None) is None:
        return False
    setattr(loop, "_selector", selectors.DefaultSelector())  # noqa: B010 - not in the type stubs
    return True


def default_executor_of(loop: AbstractEventLoop) -> Any:
    """The default executor of a loop, if it has made one (`_default_executor`, all versions)."""
    return getattr(loop, "_default_executor", None)


def thread_of_loop(loop: AbstractEventLoop) -> int | None:
    """The thread that runs a loop (`_thread_id`, all versions; not uvloop)."""
    return getattr(loop, "_thread_id", None)


def loop_of_runner(runner: Any) -> AbstractEventLoop | None:
    """The loop of an `asyncio.Runner` without making one, as `get_loop` does (`_loop`)."""
    return getattr(runner, "_loop", None)


# --- classes -----------------------------------------------------------------------------------


def _classes(module: Any, *names: str) -> tuple[type, ...]:
    return tuple(getattr(module, name) for name in names if hasattr(module, name))


def socket_transports() -> tuple[type, ...]:
    """The base class of the selector loop's transports (`_SelectorTransport`, all versions)."""
    return _classes(selector_events, "_SelectorTransport")


def pipe_transports() -> tuple[type, ...]:
    """The transports of pipes; none on Windows (all versions)."""
    if sys.platform == "win32":
        return ()
    from asyncio import unix_events

    return _classes(unix_events, "_UnixReadPipeTransport", "_UnixWritePipeTransport")


# --- what this Python does not have ------------------------------------------------------------

# What a check of the census needs: (the check, where the name is looked up, the name).
_NEEDED: tuple[tuple[str, Any, str], ...] = (
    ("tasks", asyncio, "_set_running_loop"),
    ("errors", Task, "_log_traceback"),
    ("errors", Task, "_exception"),
    ("timers", asyncio.TimerHandle, "_callback"),
    ("generators", base_events.BaseEventLoop, "_asyncgen_firstiter_hook"),
    ("connections", selector_events, "_SelectorTransport"),
)


def missing_names(check: str) -> list[str]:
    """The private names that a check of the census needs and this Python does not have."""
    return [name for wanted, where, name in _NEEDED if wanted == check and not hasattr(where, name)]
