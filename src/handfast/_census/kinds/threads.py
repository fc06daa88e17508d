"""Running threads, and the executors that they work for.

The main thread is not listed, nor are threads that `threading` did not start (`_thread` alone).
"""

from __future__ import annotations

import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial, wraps
from threading import Thread
from types import FrameType
from typing import Any

from handfast._census import creation_log, executors
from handfast._census.creation import mark_as_loop
from handfast._census.kind import Kind
from handfast._census.known_libraries import library_that_keeps
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_before, uvloop_patches
from handfast._code_owner import in_package
from handfast._origin import Origin


def running(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each open executor, and each thread that works for none."""
    threads = [thread for thread in threading.enumerate() if _is_started_by_threading(thread)]
    if not threads:
        return
    staff = executors.staff(threads)
    yield from executors.open_executors(staff)
    feeders = {executors.feeder_of(manager): manager for manager in executors.managers()}
    for thread in threads:
        if thread not in staff:
            yield live_thread(thread, feeders.get(thread))


def live_thread(thread: Thread, manager: Thread | None = None) -> LiveObject:
    """A thread, with the manager of the executor for which it works if there is one."""
    runs_a_loop = _runs_a_loop(thread)
    daemon = " (daemon)" if thread.daemon else ""
    runs = "an event loop" if runs_a_loop else _name_of(thread)
    worker = manager or thread
    return LiveObject(
        check="threads",
        code="HF424" if runs_a_loop else "HF711",
        key=("thread", id(thread)),
        what=f"thread {thread.name!r}{daemon} running {runs}",
        # A thread that is about to start is not alive yet, either.
        ended=lambda: thread.ident is not None and not thread.is_alive(),
        waiting_at=partial(_stack, thread),
        creation=creation_log.creation_of(thread),
        target=thread,
        part_of=lambda: ("thread", id(manager)) if manager else None,
        # An idle worker of an executor that is shut down or dropped.
        ends_by_itself=executors.is_staff(worker) and executors.is_idle(worker),
        library=library_that_keeps("thread name", thread.name)
        or library_that_keeps("thread class", type(thread).__module__),
    )


def by_process() -> dict[int, LiveObject]:
    """The executor of each child process that works for one, by the pid; if the executor was
    dropped, its manager thread."""
    wholes: dict[int, LiveObject] = {}
    for manager in executors.managers():
        whole = executors.open_behind(manager) or live_thread(manager)
        wholes.update(dict.fromkeys(list(getattr(manager, "processes", None) or ()), whole))
    return wholes


def _is_started_by_threading(thread: Thread) -> bool:
    return thread is not threading.main_thread() and not isinstance(thread, threading._DummyThread)


def _stack(thread: Thread) -> tuple[str, ...]:
    frames = [f for f in _frames_of(thread) if not in_package(f.f_code.co_filename, "census")]
    outside = [f for f in frames if f.f_code.co_filename != threading.__file__]
    # A thread may wait in `threading` alone: those frames are better than none.
    return tuple(str(Origin(frame.f_code, frame.f_lasti)) for frame in outside or frames)


def _runs_a_loop(thread: Thread) -> bool:
    return any(
        frame.f_code.co_name == "run_forever"
        and isinstance(frame.f_locals.get("self"), AbstractEventLoop)
        for frame in _frames_of(thread)
    )


def _name_of(thread: Thread) -> str:
    """The name of what a thread runs."""
    target = getattr(thread, "_target", None) or type(thread).run
    target = getattr(target, "func", target)  # of a partial
    name = getattr(target, "__qualname__", None)
    return name or type(target).__name__


def _frames_of(thread: Thread) -> list[FrameType]:
    """The stack of a thread, outermost frame first."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the start of threads, and pass the owner on to what they create."""
    # Before the start, since the new thread reads it.
    yield Patch(Thread, "start", call_before(_record))
    yield Patch(Thread, "_bootstrap_inner", call_before(_set_owner))
    yield from uvloop_patches(("run_forever", _wrap_run_forever))
    yield from executors.patches()


def _record(thread: Thread) -> None:
    creation_log.record(thread, 2)


def _set_owner(thread: Thread) -> None:
    """Pass the owner of a thread on to what it creates; called in the new thread."""
    creation = creation_log.creation_of(thread)
    # A worker of an executor may outlive its first user and work for others.
    if creation is None or executors.is_worker(thread):
        return
    # Since 3.14 a thread runs in a context of its own.
    context: Context | None = getattr(thread, "_context", None)
    if context is None:
        creation_log.OWNER.set(creation_log.inherited(creation.owner))
    else:
        creation_log.set_owner_in(context, creation.owner)


def _wrap_run_forever(run: Callable[[Any], None]) -> Callable[[Any], None]:
    # uvloop's own leaves no frame. `_runs_a_loop` finds this one by its name.
    @wraps(run)
    def run_forever(self: AbstractEventLoop) -> None:
        run(self)

    mark_as_loop(getattr(run_forever, "__code__"))  # noqa: B009 - `wraps` hides that it is a function
    return run_forever


KIND = Kind("threads", ("HF711", "HF712", "HF424"), running, patches)
