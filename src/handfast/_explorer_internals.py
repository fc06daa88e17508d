"""The private names of asyncio, threading and concurrent.futures that this package uses.

Each is behind a function of its own, with the versions of Python that have it. A Python that lacks
one must not pass for one that was checked: `missing_for_explorer` names what is missing.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from asyncio import base_events, base_subprocess, events, futures, tasks
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.thread import BrokenThreadPool
from contextlib import contextmanager
from functools import cache
from types import CodeType
from typing import Any

# The attribute by which `threading` knows whether a thread has ended.
# `_os_thread_handle`: 3.14 and later. `_handle`: 3.13 (gh-114271). `_tstate_lock`: up to 3.12.
_THREAD_HANDLES = ("_os_thread_handle", "_handle")
_THREAD_LOCK = "_tstate_lock"


@contextmanager
def outside_running_loop() -> Iterator[None]:
    """Let the calling thread run another event loop, although it may be inside one.

    Up to 3.13 the current task is recorded per loop. Since 3.14 there is one per thread
    (gh-129898), so it has to be taken off as well, or no other task can be entered.
    `_swap_current_task`: 3.12 and later; it accepts only the running loop.
    """
    loop = asyncio._get_running_loop()
    task: asyncio.Task[Any] | None = None
    if loop is not None and sys.version_info >= (3, 14):
        task = _private(tasks, "_swap_current_task")(loop, None)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
        if task is not None:
            _private(tasks, "_swap_current_task")(loop, task)


def set_thread_end(thread: threading.Thread, handle: object, lock: object) -> None:
    """Make `handle`, or `lock` where threads have no handle, decide whether `thread` has ended."""
    for name in _THREAD_HANDLES:
        if hasattr(thread, name):
            setattr(thread, name, handle)
            return
    setattr(thread, _THREAD_LOCK, lock)


def worker_context(executor: ThreadPoolExecutor) -> Any | None:
    """An object with `initialize()`, `run(job)` and `finalize()` for one thread of `executor`.

    `_create_worker_context`: 3.14 and later (gh-124694). None before: see `initializer_of`.
    """
    create = getattr(executor, "_create_worker_context", None)
    return None if create is None else create()


def runs_in_interpreters(executor: ThreadPoolExecutor) -> bool:
    """Whether the jobs of an executor run in interpreters of their own: 3.14 and later."""
    module = sys.modules.get("concurrent.futures.interpreter")
    return module is not None and isinstance(executor, module.InterpreterPoolExecutor)


def initializer_of(executor: ThreadPoolExecutor) -> tuple[Callable[..., Any] | None, Any]:
    """The initializer of an executor, and its arguments. `_initializer`: up to 3.13."""
    plain: Any = executor
    return plain._initializer, plain._initargs


def resolve_job(
    executor: ThreadPoolExecutor,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The job in the form that the `run` of a worker context takes.

    `_resolve_work_item_task`: 3.14 and later (gh-124694).
    """
    resolve = getattr(executor, "_resolve_work_item_task", None)
    return (function, args, kwargs) if resolve is None else resolve(function, args, kwargs)


def broken_pool(executor: ThreadPoolExecutor) -> BrokenThreadPool:
    """The error of an executor whose initializer has failed. `BROKEN`: 3.14 and later."""
    error: BrokenThreadPool = getattr(executor, "BROKEN", BrokenThreadPool)(
        _private(executor, "_broken")
    )
    return error


@cache
def chain_callback_code() -> CodeType:
    """The code of the callback by which `asyncio.wrap_future` notifies a loop. All versions."""
    code = _chain_callback_code()
    if code is None:
        raise AttributeError("asyncio.futures._chain_future has no _call_set_state")
    return code


def _chain_callback_code() -> CodeType | None:
    chain = getattr(futures, "_chain_future", None)
    constants = () if chain is None else chain.__code__.co_consts
    codes = (each for each in constants if isinstance(each, CodeType))
    return next((code for code in codes if code.co_name == "_call_set_state"), None)


@cache
def chain_copies_at_once() -> bool:
    """Whether a concurrent future that is done already gives its result to the asyncio future
    inside `wrap_future`, so that `await loop.run_in_executor(...)` may not yield.

    3.14 and later, and late releases of 3.13. Earlier ones always use `call_soon_threadsafe`.
    """
    return "_get_running_loop" in chain_callback_code().co_names


def order_exit_waiters(transport: Any, ordered: Callable[[], Any]) -> None:
    """Replace the set of futures that wait for the exit of a subprocess by `ordered()`.

    `_exit_waiters` is a set since 3.14 (gh-119710), a list before; a list has an order.
    """
    if isinstance(transport._exit_waiters, set):
        transport._exit_waiters = ordered()


def subprocess_start_is_shielded() -> bool:
    """Whether a subprocess whose start is cancelled is waited for in a shield. 3.14 and later."""
    if sys.platform == "win32":
        return False
    from asyncio import unix_events

    loop: Any = getattr(unix_events, "_UnixSelectorEventLoop", None)
    start = getattr(loop, "_make_subprocess_transport", None)
    return start is not None and "shield" in start.__code__.co_names


def default_loop_policy() -> type:
    """The class that has the loop factory of the policy that asyncio uses by default.

    `_DefaultEventLoopPolicy`: 3.14 and later, where policies are deprecated (gh-127949).
    """
    if sys.platform == "win32":
        from asyncio import windows_events as platform_events
    else:
        from asyncio import unix_events as platform_events
    names = ("_DefaultEventLoopPolicy", "DefaultEventLoopPolicy")
    found: list[type] = [
        vars(platform_events)[each] for each in names if hasattr(platform_events, each)
    ]
    return next(each for each in found[0].__mro__ if "_loop_factory" in vars(each))


def current_loop_record() -> dict[str, Any] | None:
    """Where the policy keeps what `get_event_loop` returns in this thread; None: another policy.

    `_get_event_loop_policy`: 3.14 and later, where policies are deprecated (gh-127949).
    """
    get = getattr(events, "_get_event_loop_policy", None) or events.get_event_loop_policy
    local = getattr(get(), "_local", None)
    return None if local is None else local.__dict__


def fork_warns() -> bool:
    """Whether `os.fork` would fail under `-W error` because of threads that run no Python.

    `os.fork` warns if the process has other threads, and counts those of the system
    (gh-100228): faulthandler's timer, those of a C library. Up to 3.14 the warning cannot become
    an error; in 3.15 it is raised, after the fork.
    """
    return sys.version_info >= (3, 15) and _os_thread_count() > 1


def _os_thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _private(place: Any, name: str) -> Any:
    return getattr(place, name)


@cache
def missing_for_explorer() -> tuple[str, ...]:
    """The private names that the explorer relies on and that this Python does not have."""
    return tuple(name for name, found in _needed_by_explorer() if not found)


def _needed_by_explorer() -> Iterator[tuple[str, bool]]:
    if sys.version_info >= (3, 14):
        yield "asyncio.tasks._swap_current_task", hasattr(tasks, "_swap_current_task")
    yield "asyncio.futures._chain_future", _chain_callback_code() is not None
    yield from _attributes("threading", threading, ("_active", "_time", "_allocate_lock"))
    yield from _attributes("threading", threading, ("_CRLock", "_PyRLock"))
    yield from _attributes("queue", queue, ("time", "SimpleQueue"))
    thread = threading.Thread()
    handles = (*_THREAD_HANDLES, _THREAD_LOCK)
    yield f"threading.Thread.{handles[0]}", any(hasattr(thread, name) for name in handles)
    yield from _attributes("threading.Thread", thread, ("_ident", "_started", "_initialized"))
    yield from _executor_attributes()
    yield from _attributes(
        "asyncio.BaseEventLoop",
        base_events.BaseEventLoop,
        ("_run_once", "_check_closed", "_timer_handle_cancelled", "run_forever"),
    )
    yield from _attributes("asyncio.Handle", asyncio.Handle, ("_run", "_callback", "_args"))
    yield from _attributes(
        "asyncio.base_subprocess.BaseSubprocessTransport",
        base_subprocess.BaseSubprocessTransport,
        ("_start", "_wait", "_process_exited"),
    )
    yield from _pipe_names()


def _executor_attributes() -> Iterator[tuple[str, bool]]:
    executor = ThreadPoolExecutor(1)
    contexts = ("_create_worker_context", "_initializer")
    name = "concurrent.futures.ThreadPoolExecutor"
    yield f"{name}.{contexts[0]}", any(hasattr(executor, each) for each in contexts)
    yield from _attributes(
        name,
        executor,
        (
            "_broken", "_initializer_failed", "_max_workers", "_shutdown", "_shutdown_lock",
            "_thread_name_prefix", "_threads", "_work_queue",
        ),
    )  # fmt: skip
    future: Future[None] = Future()
    yield from _attributes(
        "concurrent.futures.Future", future, ("_condition", "_done_callbacks", "_waiters")
    )


def _pipe_names() -> Iterator[tuple[str, bool]]:
    if sys.platform != "win32":
        from asyncio import unix_events

        yield from _attributes(
            "asyncio.unix_events",
            unix_events,
            ("_UnixReadPipeTransport", "_UnixWritePipeTransport", "_UnixSelectorEventLoop"),
        )
        loop: Any = getattr(unix_events, "_UnixSelectorEventLoop", None)
        yield from _attributes("asyncio.SelectorEventLoop", loop, ("_child_watcher_callback",))


def _attributes(place: str, holder: object, names: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    for name in names:
        yield f"{place}.{name}", hasattr(holder, name)
