"""Replacements for functions of the standard library during a run: `Thread.start`, `time.sleep`, the
executors and, for a thread of the program, `run_forever`.

Each calls the original unless the calling thread takes part in a run.
"""

from __future__ import annotations

import threading
import time
from asyncio import base_events
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from handfast._explore.simulation.threads.executor import Pool
from handfast._explore.simulation.threads.locks import MEMBERS, get_ident
from handfast._explore.simulation.threads.worker import Worker, name_of
from handfast._runtime.program import background_loop as background

# The originals, by the name of the replacement.
REAL: dict[str, Any] = {
    "sleep": time.sleep,
    "monotonic": time.monotonic,
    "start": threading.Thread.start,
    "submit": ThreadPoolExecutor.submit,
    "shutdown": ThreadPoolExecutor.shutdown,
    "run_forever": base_events.BaseEventLoop.run_forever,
}
_PROCESSES = "its jobs would run in other processes, at times of their own"
_THREADS_INSTEAD = "explore it with a ThreadPoolExecutor in its place"
_SECOND_LOOP = "one loop is explored, and this one would wait in a real selector"
_ONE_LOOP = (
    "let the thread hand its work to the explored loop, with Scope.submit or "
    "asyncio.run_coroutine_threadsafe; or run it for real with real_io=True (--real-io)"
)


def sleep(seconds: float, /) -> None:
    """`time.sleep`, in virtual time."""
    member = MEMBERS.get(get_ident())
    if member is None:
        REAL["sleep"](seconds)
    elif seconds < 0:
        raise ValueError("sleep length must be non-negative")
    else:
        member.wait(None, float(seconds))


def monotonic() -> float:
    """The clock by which `threading` and `queue` measure a time-out."""
    member = MEMBERS.get(get_ident())
    return float(REAL["monotonic"]() if member is None else member.baton.loop.time())


def start(thread: threading.Thread) -> None:
    """`Thread.start`: the thread exists, and starts when it gets its turn."""
    member = MEMBERS.get(get_ident())
    if member is None:
        REAL["start"](thread)
        return
    fresh: Any = thread
    if not fresh._initialized:
        raise RuntimeError("thread.__init__() not called")
    if fresh._started.is_set():
        raise RuntimeError("threads can only be started once")
    baton = member.baton
    # By name: importing concurrent.futures.process is slow, and most programs do not use it.
    if type(thread).__name__ == "_ExecutorManagerThread":
        baton.refuse("ProcessPoolExecutor", _PROCESSES, _THREADS_INSTEAD)
    target: Any = getattr(thread, "_target", None) or type(thread).run
    # It would run a second loop. Refused here, where the message can name what the program uses.
    if getattr(target, "__module__", "") == background.__name__:
        baton.refuse("handfast.BackgroundLoop", _SECOND_LOOP, _ONE_LOOP)
    what = name_of(target)
    worker = baton.start_worker(thread, what, lambda _: thread.run())
    worker.channel.post(lambda: baton.give(worker), label=f"{worker.name} starts")


def submit(
    executor: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Future[Any]:
    """`ThreadPoolExecutor.submit`: to the threads that replace those of the executor."""
    member = MEMBERS.get(get_ident())
    if member is None:
        future: Future[Any] = REAL["submit"](executor, fn, *args, **kwargs)
        return future
    pools = member.baton.pools
    if executor not in pools:
        pools[executor] = Pool(member.baton, executor)
    return pools[executor].submit(fn, args, kwargs)


def shutdown(
    executor: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False
) -> None:
    """`ThreadPoolExecutor.shutdown`."""
    member = MEMBERS.get(get_ident())
    pool = None if member is None else member.baton.pools.get(executor)
    if pool is None:
        REAL["shutdown"](executor, wait, cancel_futures=cancel_futures)
    else:
        pool.shut_down(wait=wait, cancel_futures=cancel_futures)


def submit_to_processes(executor: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`ProcessPoolExecutor.submit`: refused before a process is started."""
    member = MEMBERS.get(get_ident())
    if member is None:
        return REAL["submit_to_processes"](executor, fn, *args, **kwargs)
    return member.baton.refuse("ProcessPoolExecutor", _PROCESSES, _THREADS_INSTEAD)


def create_process_pool(executor: Any, *args: Any, **kwargs: Any) -> None:
    """`ProcessPoolExecutor.__init__`: refused, because without fork it starts a process itself."""
    member = MEMBERS.get(get_ident())
    if member is not None:
        member.baton.refuse("ProcessPoolExecutor", _PROCESSES, _THREADS_INSTEAD)
    REAL["create_process_pool"](executor, *args, **kwargs)


def run_forever(loop: Any) -> None:
    """`BaseEventLoop.run_forever`: a second loop, in a thread of the program, is refused."""
    member = MEMBERS.get(get_ident())
    if isinstance(member, Worker):
        name = f"a second event loop in {member.name}"
        member.baton.refuse(name, _SECOND_LOOP, _ONE_LOOP)
    REAL["run_forever"](loop)
