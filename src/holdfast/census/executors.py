"""Executors that are not shut down, and the threads that work for them.

They are found from their threads, so also those made before anybody looked. An executor is held
weakly: one that its program drops ends its workers by itself. The default executor of a loop is
the loop's, and nobody else's.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from functools import wraps
from itertools import count
from threading import Thread
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth
from holdfast.census.hooks import Hook
from holdfast.census.tasks import every_task
from holdfast.census.thing import Thing

__all__ = [
    "ExecutorOpen",
    "all_open",
    "feeder_of",
    "hooks",
    "is_idle",
    "is_staff",
    "is_worker",
    "managers",
    "open_behind",
    "staff",
]

# What a loop calls the threads of the default executor that it makes.
_OF_A_LOOP = {"asyncio", "uvloop"}
_DEFAULTS: weakref.WeakSet[Any] = weakref.WeakSet()
_NUMBERS = count(1)
_NUMBER = "_holdfast_number"


class ExecutorOpen(Thing):
    """An executor with workers that nobody has shut down."""

    __slots__ = ("_kind", "_name", "_number", "_weak")

    check = "threads"

    def __init__(self, executor: Any, birth: Birth | None) -> None:
        super().__init__(birth)
        self._weak = weakref.ref(executor)
        self._kind = type(executor).__name__
        self._name = getattr(executor, "_thread_name_prefix", "")
        # The address would soon be that of another executor.
        self._number = vars(executor).setdefault(_NUMBER, next(_NUMBERS))

    @property
    def key(self) -> Hashable:
        return ("executor", self._number)

    @property
    def code(self) -> str:
        return "HF712"

    @property
    def what(self) -> str:
        name = "" if self._name.startswith("ThreadPoolExecutor-") else self._name
        called = f"{self._kind} {name!r}" if name else self._kind
        return f"{called}{_with_workers(self._weak())}, not shut down"

    def over(self) -> bool:
        executor = self._weak()
        return executor is None or not _is_open(executor) or not _workers(executor)


def all_open(staff: dict[Thread, Any]) -> Iterator[ExecutorOpen]:
    """Each executor behind these threads, but for the loops' own."""
    seen: set[int] = set()
    for thread, executor in staff.items():
        if id(executor) not in seen and not _is_default(executor):
            seen.add(id(executor))
            yield ExecutorOpen(executor, births.of(executor) or _first_used(thread))


def _first_used(thread: Thread) -> Birth | None:
    """An executor whose birth nobody saw is older than whoever uses it first: nobody owns it."""
    birth = births.of(thread)
    if birth is None:
        return None
    return Birth(birth.code, birth.lasti, birth.near_code, birth.near_lasti, None)


def open_behind(thread: Thread) -> ExecutorOpen | None:
    """The executor that a thread works for, if it is open."""
    return next(all_open(staff([thread])), None)


def staff(threads: Iterable[Thread]) -> dict[Thread, Any]:
    """The threads that work for an executor which is open, and that executor."""
    found: dict[Thread, Any] = {}
    for thread in threads:
        executor = _executor_behind(thread)
        if executor is not None and _is_open(executor):
            found[thread] = executor
            if (feeder := feeder_of(thread)) is not None:
                found[feeder] = executor
    return found


def is_staff(thread: Thread) -> bool:
    """Whether it works for an executor, be that open, shut down or dropped."""
    return is_worker(thread) or is_manager(thread)


def is_worker(thread: Thread) -> bool:
    """Whether it is one of the threads of a ThreadPoolExecutor."""
    module = sys.modules.get("concurrent.futures.thread")
    return module is not None and getattr(thread, "_target", None) is module._worker


def is_manager(thread: Thread) -> bool:
    """Whether it is the thread with which a ProcessPoolExecutor looks after its processes."""
    module = sys.modules.get("concurrent.futures.process")
    return module is not None and isinstance(thread, module._ExecutorManagerThread)


def is_idle(thread: Any) -> bool:
    """Whether a thread of an executor has nothing to do: it leaves if the executor is over."""
    if is_manager(thread):
        return not thread.pending_work_items
    # A worker without work waits in its own frame, for a queue written in C.
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return True
    return frame.f_code is getattr(getattr(thread, "_target", None), "__code__", None)


def feeder_of(manager: Thread) -> Thread | None:
    """The thread that feeds the queue of a ProcessPoolExecutor."""
    feeder = getattr(getattr(manager, "call_queue", None), "_thread", None)
    return feeder if isinstance(feeder, Thread) else None


def managers() -> list[Thread]:
    """The managing threads of all ProcessPoolExecutors, open or not."""
    if "concurrent.futures.process" not in sys.modules:
        return []
    return [thread for thread in threading.enumerate() if is_manager(thread)]


def _executor_behind(thread: Any) -> Any:
    """The executor that a thread works for; None if there is none any more."""
    if is_worker(thread):
        # Its first argument, a weak reference; the arguments go when the thread ends.
        args = getattr(thread, "_args", ())
        return args[0]() if args else None
    if is_manager(thread):
        return thread.executor_reference()
    return None


def _is_open(executor: Any) -> bool:
    # The one of threads calls it `_shutdown`, the one of processes `_shutdown_thread`.
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


def _is_default(executor: Any) -> bool:
    if getattr(executor, "_thread_name_prefix", None) in _OF_A_LOOP or executor in _DEFAULTS:
        return True
    loops = {id(loop): loop for loop in (task.get_loop() for task in every_task())}
    return any(getattr(loop, "_default_executor", None) is executor for loop in loops.values())


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where executors are born, and given to a loop."""
    from concurrent.futures.thread import ThreadPoolExecutor

    yield Hook(ThreadPoolExecutor, "__init__", _around_init)
    # Large to load. If it is loaded only later, an executor of processes counts as born where it
    # was given its first work: there its managing thread was born.
    module = sys.modules.get("concurrent.futures.process")
    if module is not None:
        yield Hook(module.ProcessPoolExecutor, "__init__", _around_init)
    yield Hook(asyncio.BaseEventLoop, "set_default_executor", _around_set_default)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "set_default_executor", _around_set_default)


def _around_init(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def noted(self: Any, *args: Any, **options: Any) -> None:
        births.note(self)
        init(self, *args, **options)

    return noted


def _around_set_default(set_default: Callable[..., None]) -> Callable[..., None]:
    @wraps(set_default)
    def noted(self: AbstractEventLoop, executor: Any) -> None:
        set_default(self, executor)
        if executor is not None:
            _DEFAULTS.add(executor)

    return noted
