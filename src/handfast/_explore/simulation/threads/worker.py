"""One thread of the program: a real thread that runs only while it has the baton.

It gives the baton back when it hands something to the loop, when it has to wait, and at its end. The
events that let it continue are in its own channel, so they keep their order.
"""

from __future__ import annotations

import _thread
import functools
import sys
import threading
from _thread import allocate_lock
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from handfast._code_owner import in_package, in_stdlib_module
from handfast._explore.loop import virtual_clock as clocks
from handfast._explore.simulation.threads.locks import (
    EXPLORER_ERRORS,
    MEMBERS,
    Lock,
    RunEnded,
    get_ident,
)
from handfast._explorer_internals import set_thread_end
from handfast._origin import Origin

if TYPE_CHECKING:
    from handfast._explore.loop.external_events import Event
    from handfast._explore.simulation.threads.baton import Baton
    from handfast._explore.simulation.threads.executor import Pool


# How often `RunEnded` is raised in a thread. A thread that catches it every time is abandoned.
_END_ATTEMPTS = 100
# This many sleeps of no length take no time; after that each takes some, as on any machine.
_NAPS = 100
_NAP = 0.001


class Worker:
    """A started thread, which waits until `Baton.give`."""

    __slots__ = (
        "_alarm",
        "_naps",
        "_refusals",
        "alarms",
        "baton",
        "body",
        "channel",
        "ended",
        "finished",
        "gate",
        "ident",
        "idle",
        "last",
        "lost",
        "name",
        "pool",
        "ready",
        "stopping",
        "thread",
        "timed_out",
        "waits",
        "woke",
    )  # fmt: skip

    def __init__(
        self, baton: Baton, thread: Any, name: str, body: Callable[[Worker], object]
    ) -> None:
        self.baton = baton
        self.thread = thread
        self.name = name
        self.body = body
        self.channel = baton.loop.channel(name, between=True)
        self.alarms = baton.loop.channel(f"{name}'s clock", between=True)
        # Raw locks, as in `Baton`: the patched ones would wait for a turn themselves.
        self.gate = allocate_lock()
        self.gate.acquire()
        # Held until the thread has ended: `join` waits for it.
        self.finished = Lock()
        self.finished.take()
        self.woke = False
        self.waits = False
        self.idle = False
        self.ended = False
        # Its executor; and whether the next hand-over is the end of its job, so that the thread
        # need not wait for it.
        self.pool: Pool | None = None
        self.last = False
        self.stopping = False
        self.lost = False
        self.timed_out = False
        self.ready: Event | None = None
        self._alarm: Event | None = None
        self._refusals = 0
        self._naps = 0
        # Not `Thread.start`, which is patched, and which waits for the thread to signal its start.
        self.ident = _thread.start_new_thread(self._main, ())
        _begin(thread, self)

    # --- in the thread -----------------------------------------------------------------------

    def _main(self) -> None:
        # As `Thread._bootstrap` does it for debuggers, profilers and coverage.
        # Without these two, coverage and debuggers would not see the threads of a run.
        sys.settrace(threading.gettrace())
        sys.setprofile(threading.getprofile())
        self._live()

    def _live(self) -> None:
        MEMBERS[get_ident()] = self
        # So that `time.monotonic` in this thread reads the virtual clock of the run.
        clocks.LOOPS[get_ident()] = self.baton.loop
        try:
            self._await_turn()
            if not self.stopping:
                self.body(self)
        except EXPLORER_ERRORS as error:
            if not self.stopping:
                # Raised later on the thread of the loop: an error in a thread cannot end the run by itself.
                self.baton.failure = error
        except BaseException as error:
            if not (self.stopping or isinstance(error, SystemExit)):
                self.baton.report_error(self, error)
        finally:
            self.retire()
            # Idents are used again: a later real thread must not be taken for this one.
            del MEMBERS[get_ident()], clocks.LOOPS[get_ident()]
            self.baton.returned(self)

    def retire(self) -> None:
        """Let the program see that the thread has ended."""
        if not self.ended:
            self.ended = True
            _finish(self.thread, self.ident)
            if self.finished.locked():  # an interrupted `join` releases it, up to Python 3.12
                self.finished.let_go(self)

    def park(self) -> None:
        """Give the baton back, and wait until it returns."""
        self.refuse_if_over()
        self.baton.returned(self)
        self._await_turn()
        self.refuse_if_over()

    def _await_turn(self) -> None:
        seen = None
        while not self.gate.acquire(timeout=self.baton.turn_timeout):
            seen = self.baton.check_loop_thread(seen)

    def refuse_if_over(self) -> None:
        """Raise `RunEnded` if the run has ended."""
        if self.stopping:
            self._refusals += 1
            if self._refusals > _END_ATTEMPTS:
                self.baton.returned(self)
                self.lost = True
                # The program catches everything. The thread stays here forever, without its turn.
                self.gate.acquire()
            raise RunEnded

    def hand_over(self, label: str, arrive: Callable[[], object]) -> None:
        """Hand something to the loop. When it has arrived the thread continues, at once or later."""
        self.refuse_if_over()
        if self.last and self.pool is not None:
            self.last = False
            self.channel.post(partial(self._end_of_job, arrive, self.pool), label=label)
        else:
            self.channel.post(partial(self._handed_over, arrive), label=label)
            self.park()

    def _handed_over(self, arrive: Callable[[], object]) -> None:
        arrive()
        if self._is_preempted():
            self.wake()
        else:
            self.baton.give(self)

    def _end_of_job(self, arrive: Callable[[], object], pool: Pool) -> None:
        """No code of the program follows in this thread, so it needs no turn."""
        arrive()
        pool.done(self)

    def offer_turn(self) -> None:
        """Let another thread run first; whether it does is a choice."""
        self.woke = False
        if not self.stopping and self._is_preempted():
            self.wake()
            self.park()

    def _is_preempted(self) -> bool:
        answer = self.baton.loop.choose(
            "thread",
            2,
            lambda: (self.name, ""),
            lambda _: f"another thread runs before {self.name} continues",
        )
        return bool(answer)

    def wait(self, lock: Lock | None, timeout: float) -> bool:
        """Wait until `lock` is taken, or until the time-out. Without a lock: sleep."""
        self.refuse_if_over()
        self.timed_out = False
        if timeout == 0:
            # Otherwise a thread that polls with sleep(0) would keep the clock from moving.
            self._naps += 1
            timeout = 0.0 if self._naps < _NAPS else _NAP
        if timeout >= 0:
            label = f"the time-out of {self.name}"
            # A channel of its own: a time-out has no fixed order with what else wakes the thread.
            self._alarm = self.alarms.post(self._ring, label=label, after=timeout)
        if lock is not None:
            lock.waiters.append(self)
        self.waits = True
        try:
            # A wake-up is a hint: another thread may have taken the lock before this one runs.
            while True:
                self.park()
                if lock is not None and lock.take():
                    return True
                if self.timed_out:
                    return False
        finally:
            self.waits = False
            self.unwake()
            if lock is not None:
                lock.waiters.remove(self)
            if self._alarm is not None:
                self.alarms.drop(self._alarm)
                self._alarm = None

    # --- called by the thread that has the baton ---------------------------------------------

    def position(self) -> str:
        """Where the thread waits."""
        return waiting_in(frame_of(self.ident))

    def wake(self) -> None:
        """Let it continue: the lock that it waits for is free."""
        if self.ready is None:
            self.ready = self.channel.post(self._go_on, label=f"{self.name} continues")

    def unwake(self) -> None:
        """Take that back: the lock is taken again."""
        if self.ready is not None:
            self.channel.drop(self.ready)
            self.ready = None

    def _go_on(self) -> None:
        self.ready = None
        self.baton.give(self)

    def _ring(self) -> None:
        self._alarm = None
        self.timed_out = True
        self.baton.give(self)


class Handle:
    """The handle that a thread uses on Python 3.13 and later to wait for its end."""

    __slots__ = ("_finished", "ident")

    def __init__(self, finished: Lock, ident: int) -> None:
        self._finished = finished
        self.ident = ident

    def is_done(self) -> bool:
        return not self._finished.locked()

    def join(self, timeout: float | None = None) -> None:
        if self._finished.acquire(True, -1 if timeout is None else timeout):
            self._finished.release()


def _begin(thread: Any, worker: Worker) -> None:
    """Set the attributes that `Thread.start` and `Thread._bootstrap` would set."""
    thread._ident = worker.ident
    set_thread_end(thread, Handle(worker.finished, worker.ident), worker.finished)
    thread._started.set()
    # Otherwise `threading.current_thread()` would create a dummy for this ident.
    threading._active[worker.ident] = thread  # type: ignore[attr-defined]


def _finish(thread: Any, ident: int) -> None:
    active = threading._active  # type: ignore[attr-defined]
    if active.get(ident) is thread:
        del active[ident]


# --- where a thread is -------------------------------------------------------------------------


def name_of(function: object) -> str:
    """The name of a function, the same in every run; `to_thread` wraps it in a partial."""
    # Not anything with a `func`: a Mock has one, which has one, without end.
    while isinstance(function, functools.partial):
        inner, args = function.func, function.args
        function = (
            args[0] if getattr(inner, "__qualname__", "") == "Context.run" and args else inner
        )
    return str(getattr(function, "__qualname__", type(function).__name__))


def waiting_in(frame: FrameType | None) -> str:
    """`Queue.get at file:line in function`: what it waits in, and where the program called it."""
    call = ""
    while frame is not None and _is_waiting_machinery(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") not in _turn_modules():
            call = frame.f_code.co_qualname
        frame = frame.f_back
    if frame is None:
        return call or "its first line, not yet reached"
    where = str(Origin(frame.f_code, frame.f_lasti))
    return f"{call} at {where}" if call else where


def program_line(frame: FrameType | None) -> Origin | None:
    """The innermost line of the program at or above `frame`."""
    while frame is not None and _is_waiting_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    return Origin(frame.f_code, frame.f_lasti) if frame is not None else None


def _is_waiting_machinery(filename: str) -> bool:
    """Whether a file is part of how threads wait. `contextlib` and the like count as the program."""
    return in_package(filename, "explore.threads") or in_stdlib_module(
        filename, "asyncio", "concurrent", "queue", "threading"
    )


@cache
def _turn_modules() -> frozenset[str]:
    """The modules in which threads change turns. The program does not call their functions."""
    from handfast._explore.simulation.threads import baton, executor  # they import this module

    # Since 3.14 the job is called by `WorkerContext` in concurrent.futures.thread.
    return frozenset({__name__, baton.__name__, executor.__name__, "concurrent.futures.thread"})


def in_debugger(frame: FrameType | None) -> bool:
    """Whether the thread is in a debugger, where it may wait as long as it likes."""
    while frame is not None:
        if frame.f_globals.get("__name__") in ("bdb", "pdb"):
            return True
        frame = frame.f_back
    return False


def frame_of(ident: int) -> FrameType | None:
    """The innermost frame of a thread, None if it has ended."""
    return sys._current_frames().get(ident)
