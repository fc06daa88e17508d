"""The threads that run, and the executors that they work for.

Left out is what nobody can end: the main thread, the workers of a loop's default executor, and
what asyncio, anyio or a debugger keep for themselves. A thread made with `_thread` alone is out
of sight, since `threading` does not know it.
"""

from __future__ import annotations

import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from threading import Thread
from types import FrameType
from typing import Any

from holdfast.census import births, executors
from holdfast.census.birth import edge
from holdfast.census.hooks import Hook
from holdfast.census.thing import Thing
from holdfast.origin import Origin

__all__ = ["ThreadRunning", "all_running", "by_process", "hooks"]

# asyncio waits for each child in one of these, up to 3.11 by default; a test's own clock.
_NAMES = ("waitpid-", "asyncio-waitpid-", "pytest_timeout ")
# Where the classes of such threads live: pools of a loop, debuggers, one monitor for all bars.
_MODULES = ("anyio._backends.", "_pydevd_bundle.", "pydevd", "debugpy", "tqdm._monitor")


class ThreadRunning(Thing):
    """A thread that has not ended."""

    __slots__ = ("_manager", "thread")

    check = "threads"

    def __init__(self, thread: Thread, manager: Thread | None = None) -> None:
        super().__init__(births.of(thread))
        self.thread = thread
        self._manager = manager

    @property
    def key(self) -> Hashable:
        return ("thread", id(self.thread))

    @property
    def code(self) -> str:
        return "HF424" if _runs_a_loop(self.thread) else "HF711"

    @property
    def what(self) -> str:
        daemon = " (daemon)" if self.thread.daemon else ""
        runs = "an event loop" if _runs_a_loop(self.thread) else _name_of(self.thread)
        return f"thread {self.thread.name!r}{daemon} running {runs}"

    def stands(self) -> tuple[str, ...]:
        frames = [f for f in _frames_of(self.thread) if f.f_code.co_filename != __file__]
        theirs = [f for f in frames if f.f_code.co_filename != threading.__file__]
        # A thread that is in nobody else's code stands there, and not nowhere.
        return tuple(str(Origin(frame.f_code, frame.f_lasti)) for frame in theirs or frames)

    def over(self) -> bool:
        # One that is only about to begin is not alive yet, either.
        return self.thread.ident is not None and not self.thread.is_alive()

    @property
    def part_of(self) -> Hashable | None:
        """The thread that manages the executor for which this one works."""
        return ("thread", id(self._manager)) if self._manager else None

    @property
    def passing(self) -> bool:
        """A worker without work, of an executor that is shut down or dropped."""
        thread = self._manager or self.thread
        return executors.is_staff(thread) and executors.is_idle(thread)


def all_running(loop: AbstractEventLoop | None = None) -> Iterator[Thing]:
    """Each executor that is open, and each thread that works for none."""
    running = [thread for thread in threading.enumerate() if not _is_nobodys(thread)]
    if not running:
        return
    staff = executors.staff(running)
    yield from executors.all_open(staff)
    feeders = {executors.feeder_of(manager): manager for manager in executors.managers()}
    for thread in running:
        if thread not in staff:
            yield ThreadRunning(thread, feeders.get(thread))


def by_process() -> dict[int, Thing]:
    """The child processes that work for an executor, by their pids, and what they are part of."""
    wholes: dict[int, Thing] = {}
    for manager in executors.managers():
        whole = executors.open_behind(manager) or ThreadRunning(manager)
        wholes.update(dict.fromkeys(list(getattr(manager, "processes", None) or ()), whole))
    return wholes


def _is_nobodys(thread: Thread) -> bool:
    return (
        thread is threading.main_thread()
        or isinstance(thread, threading._DummyThread)
        or thread.name.startswith(_NAMES)
        or type(thread).__module__.startswith(_MODULES)
    )


def _runs_a_loop(thread: Thread) -> bool:
    return any(
        frame.f_code.co_name == "run_forever"
        and isinstance(frame.f_locals.get("self"), AbstractEventLoop)
        for frame in _frames_of(thread)
    )


def _name_of(thread: Thread) -> str:
    """What a thread runs, in words."""
    target = getattr(thread, "_target", None) or type(thread).run
    target = getattr(target, "func", target)  # of a partial
    name = getattr(target, "__qualname__", None)
    return name or type(target).__name__


def _frames_of(thread: Thread) -> list[FrameType]:
    """Where a thread stands now, the outermost frame first."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where threads are born, and where they begin."""
    yield Hook(Thread, "start", _around_start)
    yield Hook(Thread, "_bootstrap_inner", _around_bootstrap)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "run_forever", _around_run_forever)
    yield from executors.hooks()


def _around_start(start: Callable[[Thread], None]) -> Callable[[Thread], None]:
    @wraps(start)
    def noted(self: Thread) -> None:
        births.note(self)  # first, since the new thread reads it
        start(self)

    return noted


def _around_bootstrap(bootstrap: Callable[[Thread], None]) -> Callable[[Thread], None]:
    @wraps(bootstrap)
    def handed_down(self: Thread) -> None:
        birth = births.of(self)
        # The workers of an executor may outlive whoever came first, and work for others.
        if birth is not None and not executors.is_worker(self):
            _hand_down(self, birth.owner)
        bootstrap(self)

    return handed_down


def _hand_down(thread: Thread, owner: object) -> None:
    context: Any = getattr(thread, "_context", None)  # from 3.14 on it runs in one of its own
    if context is None:
        births.OWNER.set(births.handed_down(owner))
        return
    try:
        context.run(births.OWNER.set, births.handed_down(owner))
    except RuntimeError:  # it is entered already: whoever did that has seen to it
        pass


def _around_run_forever(run: Callable[[Any], None]) -> Callable[[Any], None]:
    # uvloop's own leaves no frame. With this one around it `_runs_a_loop` sees it, by its name.
    @wraps(run)
    def run_forever(self: AbstractEventLoop) -> None:
        run(self)

    edge(getattr(run_forever, "__code__"))  # noqa: B009 - `wraps` hides that it is a function
    return run_forever
