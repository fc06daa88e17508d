"""Which thread runs: the thread of the loop, or one of the program. Exactly one runs at a time.

The thread of the loop gives the baton away and gets it back, so it decides, also while its own code
waits for a thread. A thread that does not give it back in time cannot be controlled: the run ends
with `Uncontrolled`.
"""

from __future__ import annotations

import sys
import threading
from _thread import allocate_lock
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from handfast._code_owner import UnseenByLoop
from handfast._explore.loop.stepping import Deadlocked, Livelocked
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.simulation.threads.locks import (
    MEMBERS,
    Lock,
    ProgramLock,
    RunEnded,
    get_ident,
)
from handfast._explore.simulation.threads.worker import Worker, frame_of, in_debugger, waiting_in

if TYPE_CHECKING:
    from handfast._explore.loop.external_events import Event
    from handfast._explore.simulation.threads.executor import Pool


# Real seconds for which a thread may keep the baton.
TURN_TIMEOUT = 5.0
_FOREVER = float("inf")
_NUMBERS = count(1)
# The turns of all threads after the program has ended.
_LAST_TURNS = 10_000
# A turn of a thread takes as long as this many steps of the loop.
_TURN_COST = 10
_REMEDY = (
    "create the lock, or the object it waits for, inside the program, so that it can be controlled; "
    "or use real_io=True (--real-io)"
)


class Baton:
    """The threads of one run. In `MEMBERS` it is the thread of the loop."""

    woke = False
    # A thread did not give the baton back: no thread gets it any more.
    lost = False
    # An error in a thread that ends the run.
    failure: BaseException | None = None
    # Why the thread of the loop cannot continue; and how many of its waits are nested.
    stuck: Deadlocked | None = None
    _nested = 0
    # Whether another thread than the loop's has the baton.
    _turn = False
    _last_turns = _LAST_TURNS
    _turns = 0

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.number = next(_NUMBERS)
        self.ident = get_ident()
        self.turn_timeout = TURN_TIMEOUT
        self.workers: list[Worker] = []
        # By executor.
        self.pools: dict[Any, Pool] = {}
        # A raw lock: the patched `threading.Lock` would be controlled by this very class.
        self._gate = allocate_lock()
        self._gate.acquire()
        # Compared at an error: only a hook that the program sets during the run counts as its own.
        self._hook = threading.excepthook
        # A program may call `explore` itself, so this thread may be in an outer run already.
        self._outer = MEMBERS.get(self.ident)
        MEMBERS[self.ident] = self

    @property
    def baton(self) -> Baton:
        return self

    # --- turns -------------------------------------------------------------------------------

    def give(self, worker: Worker) -> None:
        """Let `worker` run until it gives the baton back. Called on the thread of the loop."""
        self._count()
        if not self.lost:
            self._run(worker)
        if self.failure is not None:
            error, self.failure = self.failure, None
            self._abort(error)

    def give_now(self, worker: Worker) -> None:
        """As `give`, in the middle of a step of the loop."""
        self._nested += 1
        try:
            self.give(worker)
        finally:
            self._nested -= 1

    def _run(self, worker: Worker) -> None:
        try:
            self._turn = True
            worker.gate.release()
            with UnseenByLoop():
                while not self._gate.acquire(timeout=self.turn_timeout):
                    if not in_debugger(frame_of(worker.ident)):
                        self._lose(worker)
            self._turn = False
        except BaseException:  # also from a signal handler: the worker still has the baton
            self._give_up()
            raise

    def returned(self, worker: Worker) -> None:
        """Give the baton back to the thread of the loop. Called on the thread of `worker`."""
        if not worker.lost:
            self._gate.release()

    def _count(self) -> None:
        """Count a turn as a step: threads that keep each other busy are a livelock, too."""
        loop = self.loop
        loop.stepper.steps += 1
        self._turns += 1
        if loop.settling:
            self._last_turns -= 1
            if self._last_turns < 0:
                self._give_up()
        elif max(loop.stepper.steps, self._turns * _TURN_COST) > loop.settings.step_limit:
            self._abort(Livelocked())

    def _lose(self, worker: Worker) -> NoReturn:
        self._abort(self._not_responding(worker.name, worker.ident))

    def _not_responding(self, who: str, ident: int) -> Uncontrolled:
        where = waiting_in(frame_of(ident))
        why = f"it has been in {where} for {self.turn_timeout:g} s without giving up control"
        self.loop.uncontrolled = error = Uncontrolled(f"what {who} does", why, _REMEDY)
        self._give_up()
        return error

    def _give_up(self) -> None:
        """Give the baton to no thread any more, and wait for none."""
        self.lost = True
        for worker in self.workers:
            worker.stopping = worker.lost = True

    def check_loop_thread(self, seen: object) -> object:
        """Check, in a thread that has waited long for its turn, that the thread of the loop still
        runs. It may be blocked in an uncontrolled lock that a thread without a turn holds. `seen`
        is the result of the last call."""
        frame = frame_of(self.ident)
        if self.lost:
            raise RunEnded
        if self._turn or frame is None or in_debugger(frame):
            return None
        # Equal twice in a row means that not one bytecode ran for the length of a time-out.
        state = (frame.f_code, frame.f_lasti, self.loop.stepper.steps, self.loop.stepper.instant)
        if state == seen:
            _stop(self.loop, self._not_responding("the thread of the loop", self.ident))
            raise RunEnded
        return state

    def refuse(self, name: str, why: str, remedy: str) -> NoReturn:
        """Stop the run: the call cannot be controlled. Called on any thread of the run."""
        self.loop.uncontrolled = error = Uncontrolled(name, why, remedy)
        raise error

    def _abort(self, error: BaseException) -> NoReturn:
        """End the run. Raised inside a step, the error would only end the task that runs."""
        if self._nested and not self.loop.settling:
            _stop(self.loop, error)
        raise error

    # --- the thread of the loop waits ----------------------------------------------------------

    def offer_turn(self) -> None:
        """Nothing to offer: threads run between two steps of the loop, not inside one."""
        self.woke = False

    def wait(self, lock: Lock | None, timeout: float) -> bool:
        """Wait for `lock`, or sleep, on the thread of the loop: other threads run meanwhile."""
        until = _FOREVER if timeout < 0 else self.loop.time() + timeout
        self._nested += 1
        try:
            self._count()  # code that polls with `time.sleep` would have no end
            while self._run_other_thread(lock, until):
                pass
            return lock is not None and lock.take()
        finally:
            self._nested -= 1

    def _run_other_thread(self, lock: Lock | None, until: float) -> bool:
        """Let a thread run, or time pass. False if the thread of the loop continues now."""
        loop = self.loop
        if self.stuck is not None and not loop.settling:
            raise self.stuck  # again, in clean-up code
        if self.lost:
            raise RunEnded
        options: list[Event | None] = [*loop.events.next_events(loop.time(), between=True)]
        if loop.time() >= until or (lock is not None and not lock.locked()):
            # First, because choice 0 is the normal order: a thread that can continue does so.
            options.insert(0, None)
        if not options:
            self._advance_clock(lock, until)
            return True
        event, arrive = loop._pick("between", options)
        if event is not None:
            loop.events.drop(event)
            arrive()
        return event is not None

    def _advance_clock(self, lock: Lock | None, until: float) -> None:
        """Move the clock to the time when a thread can continue."""
        heads = self.loop.events.next_events(_FOREVER, between=True)
        when = min(until, heads[0].at) if heads else until
        if when == _FOREVER:
            self.stuck = Deadlocked()
            self.stuck.code, self.stuck.lines = self._code(lock), self._who_waits()
            self._abort(self.stuck)
        self.loop._move(when, waited=0.0)

    def _code(self, lock: Lock | None) -> str:
        """HF431 for a deadlock among locks, else HF423: the loop waits for itself."""
        # More than one blocked thread, or a lock of the program, is a cycle of locks.
        among_threads = len(self.blocked()) > 1
        return "HF431" if among_threads or isinstance(lock, ProgramLock) else "HF423"

    def _who_waits(self) -> tuple[str, ...]:
        return (f"the thread of the loop waits in {waiting_in(sys._getframe(1))}", *self.blocked())

    def blocked(self) -> tuple[str, ...]:
        """The threads that wait, each with its position."""
        return tuple(
            f"{worker.name} waits in {worker.position()}"
            for worker in self.workers
            if worker.waits and not worker.ended
        )

    # --- start and end of threads ------------------------------------------------------------

    def start_worker(self, thread: Any, what: str, body: Callable[[Worker], object]) -> Worker:
        """Start a thread, which waits for its first turn."""
        worker = Worker(self, thread, f"thread {len(self.workers) + 1} ({what})", body)
        self.workers.append(worker)
        return worker

    def report_error(self, worker: Worker, error: BaseException) -> None:
        """Report an exception that a thread did not catch."""
        if threading.excepthook is not self._hook:  # set by the program
            args = (type(error), error, error.__traceback__, worker.thread)
            threading.excepthook(threading.ExceptHookArgs(args))
        elif not self.loop.settling:
            message = f"unhandled error in {worker.name}"
            self.loop.stepper.complaints.append({"message": message, "exception": error})

    def changed_from_outside(self, what: str) -> None:
        """Stop the run: a thread that takes no part in it has changed something."""
        self.loop.uncontrolled = Uncontrolled(
            what,
            "it was done by a thread that the program did not start in this run",
            "start the thread, or the executor, inside the program",
        )

    def end(self) -> None:
        """End the run: raise `RunEnded` in every thread that still waits."""
        for worker in self.workers:
            worker.stopping = True
            if worker.idle:  # no code of the program runs there
                worker.retire()
            # A thread that has ended gives no baton back, so waiting for it below would time out.
            worker.lost |= self.lost or worker.ended
        for worker in self.workers:
            if worker.gate.locked():
                worker.gate.release()
            if not worker.lost:
                self._gate.acquire(timeout=self.turn_timeout)
        for pool in self.pools.values():
            pool.leave()
        if self._outer is None:
            del MEMBERS[self.ident]
        else:
            MEMBERS[self.ident] = self._outer


def _stop(loop: Any, error: BaseException) -> None:
    def stop() -> NoReturn:
        del loop._run_once, loop._between
        raise error

    loop._run_once = loop._between = stop
    # Also inside a batch: the next handle must not run.
    loop._quiet_until = 0
