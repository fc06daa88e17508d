"""Open executors, found from the threads that work for them.

So executors that were created before the recording are found, too. They are referenced weakly: one
that the program drops ends its workers by itself.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from threading import Thread
from typing import Any

from handfast._asyncio_internals import default_executor_of
from handfast._census import creation_log
from handfast._census.creation import Creation
from handfast._census.event_loops import every_task
from handfast._census.known_libraries import library_that_keeps
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_after, call_before, uvloop_patches

_DEFAULTS: weakref.WeakSet[Any] = weakref.WeakSet()
# Numbers executors: an address is soon used again by another one.
_NUMBERS = count(1)
_NUMBER = "_handfast_number"


def open_executors(staff: dict[Thread, Any]) -> Iterator[LiveObject]:
    """Each executor behind these threads."""
    seen: set[int] = set()
    for thread, executor in staff.items():
        if id(executor) not in seen:
            seen.add(id(executor))
            yield _live_executor(executor, thread)


def _live_executor(executor: Any, thread: Thread) -> LiveObject:
    name = getattr(executor, "_thread_name_prefix", "")
    shown = f" {name!r}" if name and not name.startswith("ThreadPoolExecutor-") else ""
    weak = weakref.ref(executor)
    return LiveObject(
        check="threads",
        code="HF712",
        key=("executor", vars(executor).setdefault(_NUMBER, next(_NUMBERS))),
        what=f"{type(executor).__name__}{shown}{_with_workers(executor)}, not shut down",
        ended=lambda: _has_ended(weak()),
        creation=creation_log.creation_of(executor) or _first_use(thread),
        target=weak,
        library=_library(executor),
    )


def _has_ended(executor: Any) -> bool:
    return executor is None or not _is_open(executor) or not _workers(executor)


def _first_use(thread: Thread) -> Creation | None:
    """An executor that was created before the recording is older than its first user: it has no
    owner."""
    creation = creation_log.creation_of(thread)
    return creation and creation.for_owner(None)


def open_behind(thread: Thread) -> LiveObject | None:
    """The executor that a thread works for, if it is open."""
    return next(open_executors(staff([thread])), None)


def staff(threads: Iterable[Thread]) -> dict[Thread, Any]:
    """The threads that work for an open executor, each with its executor."""
    found: dict[Thread, Any] = {}
    for thread in threads:
        executor = _executor_behind(thread)
        if executor is not None and _is_open(executor):
            found[thread] = executor
            if (feeder := feeder_of(thread)) is not None:
                found[feeder] = executor
    return found


def is_staff(thread: Thread) -> bool:
    """Whether a thread works for an executor that is open, shut down or dropped."""
    return is_worker(thread) or is_manager(thread)


def is_worker(thread: Thread) -> bool:
    """Whether a thread is a worker of a ThreadPoolExecutor."""
    module = sys.modules.get("concurrent.futures.thread")
    return module is not None and getattr(thread, "_target", None) is module._worker


def is_manager(thread: Thread) -> bool:
    """Whether a thread manages the processes of a ProcessPoolExecutor."""
    module = sys.modules.get("concurrent.futures.process")
    return module is not None and isinstance(thread, module._ExecutorManagerThread)


def is_idle(thread: Any) -> bool:
    """Whether a thread of an executor has no work: it ends if the executor is shut down."""
    if is_manager(thread):
        return not thread.pending_work_items
    # An idle worker waits in its own frame, for a queue written in C.
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return True
    return frame.f_code is getattr(getattr(thread, "_target", None), "__code__", None)


def feeder_of(manager: Thread) -> Thread | None:
    """The thread that feeds the queue of a ProcessPoolExecutor."""
    feeder = getattr(getattr(manager, "call_queue", None), "_thread", None)
    return feeder if isinstance(feeder, Thread) else None


def managers() -> list[Thread]:
    """The manager threads of all ProcessPoolExecutors, open or not."""
    if "concurrent.futures.process" not in sys.modules:
        return []
    return [thread for thread in threading.enumerate() if is_manager(thread)]


def _executor_behind(thread: Any) -> Any:
    """The executor that a thread works for; None if it was dropped."""
    if is_worker(thread):
        # Its first argument is a weak reference. The arguments are deleted when the thread ends.
        args = getattr(thread, "_args", ())
        return args[0]() if args else None
    if is_manager(thread):
        return thread.executor_reference()
    return None


def _is_open(executor: Any) -> bool:
    # `_shutdown` in ThreadPoolExecutor, `_shutdown_thread` in ProcessPoolExecutor.
    return not getattr(executor, "_shutdown", getattr(executor, "_shutdown_thread", False))


def _workers(executor: Any) -> Collection[Any]:
    processes = getattr(executor, "_processes", None)
    if processes is not None:
        return list(processes)
    return [thread for thread in list(getattr(executor, "_threads", ())) if thread.is_alive()]


def _with_workers(executor: Any) -> str:
    number = len(_workers(executor))
    kind = "process" if hasattr(executor, "_processes") else "thread"
    plural = "" if number == 1 else "es" if kind == "process" else "s"
    return f" with {number} {kind}{plural}" if number else ""


def _library(executor: Any) -> str:
    """The library of the event loop whose default executor this is; empty if it is none."""
    prefix = getattr(executor, "_thread_name_prefix", "")
    if library := library_that_keeps("default executor", prefix):
        return library
    loops = {id(loop): loop for loop in (task.get_loop() for task in every_task())}
    is_default = executor in _DEFAULTS or any(
        default_executor_of(loop) is executor for loop in loops.values()
    )
    return "asyncio" if is_default else ""


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the creation of executors, and which ones become the default of a loop."""
    from concurrent.futures.thread import ThreadPoolExecutor

    yield Patch(ThreadPoolExecutor, "__init__", call_before(_record))
    # Not imported, since it is large. If it is imported later, the line that submits the first
    # work is shown: it starts the manager thread.
    module = sys.modules.get("concurrent.futures.process")
    if module is not None:
        yield Patch(module.ProcessPoolExecutor, "__init__", call_before(_record))
    yield Patch(asyncio.BaseEventLoop, "set_default_executor", call_after(_record_default))
    yield from uvloop_patches(("set_default_executor", call_after(_record_default)))


def _record(executor: Any, *args: Any, **options: Any) -> None:
    creation_log.record(executor, 2)


def _record_default(loop: AbstractEventLoop, executor: Any) -> None:
    if executor is not None:
        _DEFAULTS.add(executor)
