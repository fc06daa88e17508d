"""Whose turn it is: the loop's thread, or one of the program's. Exactly one runs at any moment.

The loop's thread gives the baton and gets it back; so it decides, also while its own code waits
for a thread. A thread that does not give it back in time is out of control, and that is said.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.stepping import Deadlocked, Livelocked
from holdfast.explore.twins.threads.locks import Lock, ProgramLock
from holdfast.explore.twins.threads.members import MEMBERS, Ended, allocate_lock, get_ident
from holdfast.explore.twins.threads.words import debugged, frame_of, standing
from holdfast.explore.twins.threads.worker import Worker

if TYPE_CHECKING:
    from holdfast.explore.twins.threads.pools import Pool
    from holdfast.explore.world import Event

__all__ = ["PATIENCE", "Baton"]

# Real seconds for which a thread may keep the baton.
PATIENCE = 5.0
_FOREVER = float("inf")
_NUMBERS = count(1)
# So many turns the threads get once the program has ended.
_LAST_TURNS = 10_000
_WAY_OUT = (
    "make the lock, or whatever it waits for, inside the program, so that it is known; or allow "
    "it with real_io=True (--real-io)"
)


class Baton:
    """The threads of one run. As a member of the run it stands for the loop's thread."""

    # Whether it has let somebody go on who had to wait, since it was last asked.
    woke = False
    # Threads are out of control: none gets the baton any more.
    lost = False
    # What a thread has come upon that ends the run.
    failure: BaseException | None = None
    # Why the loop's thread cannot go on; and how deep in waits of its own it is.
    stuck: Deadlocked | None = None
    _nested = 0
    # Whether another thread than the loop's has the baton.
    _turn = False
    _last_turns = _LAST_TURNS

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.number = next(_NUMBERS)
        self.ident = get_ident()
        self.patience = PATIENCE
        self.workers: list[Worker] = []
        # By the executor for which they stand.
        self.pools: dict[Any, Pool] = {}
        self._gate = allocate_lock()
        self._gate.acquire()
        self._hook = threading.excepthook
        self._outer = MEMBERS.get(self.ident)
        MEMBERS[self.ident] = self

    @property
    def baton(self) -> Baton:
        return self

    # --- turns -------------------------------------------------------------------------------

    def give(self, worker: Worker) -> None:
        """Let `worker` run to its next hand-over. On the loop's thread."""
        self._count()
        if not self.lost:
            self._run(worker)
        if self.failure is not None:
            error, self.failure = self.failure, None
            self._abort(error)

    def _run(self, worker: Worker) -> None:
        try:
            self._turn = True
            worker.gate.release()
            while not self._gate.acquire(timeout=self.patience):
                if not debugged(frame_of(worker.ident)):
                    self._lose(worker)
            self._turn = False
        except BaseException:  # of a signal's handler, too: the worker still has the baton
            self._give_up()
            raise

    def returned(self, worker: Worker) -> None:
        """In the thread of `worker`: the loop's thread has its turn."""
        if not worker.lost:
            self._gate.release()

    def _count(self) -> None:
        """A turn is a step: threads that keep each other busy are a livelock, too."""
        loop = self.loop
        loop.steps += 1
        if loop.settling:
            self._last_turns -= 1
            if self._last_turns < 0:
                self._give_up()
        elif loop.steps > loop.settings.step_limit:
            self._abort(Livelocked())

    def _lose(self, worker: Worker) -> NoReturn:
        self._abort(self._stands_still(worker.name, worker.ident))

    def _stands_still(self, who: str, ident: int) -> Uncontrolled:
        where = standing(frame_of(ident))
        why = f"it has stood in {where} for {self.patience:g} s and gives no sign"
        self.loop.uncontrolled = error = Uncontrolled(f"what {who} does", why, _WAY_OUT)
        self._give_up()
        return error

    def _give_up(self) -> None:
        """Nobody gets the baton any more, and nobody is waited for."""
        self.lost = True
        for worker in self.workers:
            worker.doomed = worker.lost = True

    def looked_after(self, seen: object) -> object:
        """In a thread that has waited long for its turn: does the loop's thread still move? It may
        wait, where nobody sees it, for something that a thread holds which has no turn. `seen` is
        what was seen the last time."""
        frame = frame_of(self.ident)
        if self.lost:
            raise Ended
        if self._turn or frame is None or debugged(frame):
            return None
        sight = (frame.f_code, frame.f_lasti, self.loop.steps, self.loop.instant)
        if sight == seen:
            _stop(self.loop, self._stands_still("the loop's thread", self.ident))
            raise Ended
        return sight

    def refuse(self, name: str, why: str, way_out: str) -> NoReturn:
        """What a thread of the program does here is not controlled. In its thread or the loop's."""
        self.loop.uncontrolled = error = Uncontrolled(name, why, way_out)
        raise error

    def _abort(self, error: BaseException) -> NoReturn:
        """End the run. Inside a step the error would end only the task whose step it is."""
        if self._nested and not self.loop.settling:
            _stop(self.loop, error)
        raise error

    # --- the loop's thread waits -----------------------------------------------------------------

    def offer_turn(self) -> None:
        """The loop's own code is one step; threads come between two of them."""
        self.woke = False

    def wait(self, lock: Lock | None, timeout: float) -> bool:
        """The loop's thread waits for `lock`, or sleeps: the threads go on, the loop does not."""
        until = _FOREVER if timeout < 0 else self.loop.time() + timeout
        self._nested += 1
        try:
            while self._others_first(lock, until):
                pass
            return lock is not None and lock.take()
        finally:
            self._nested -= 1

    def _others_first(self, lock: Lock | None, until: float) -> bool:
        """Let a thread go on, or time pass. False if the loop's own thread goes on now."""
        loop = self.loop
        if self.stuck is not None and not loop.settling:
            raise self.stuck  # in the clean-up after that
        if self.lost:
            raise Ended
        options: list[Event | None] = [*loop.world.heads(loop.time(), between=True)]
        if loop.time() >= until or (lock is not None and not lock.locked()):
            options.insert(0, None)
        if not options:
            self._sleep_on(lock, until)
            return True
        event, arrive = loop._pick("between", options)
        if event is not None:
            loop.world.drop(event)
            arrive()
        return event is not None

    def _sleep_on(self, lock: Lock | None, until: float) -> None:
        """Nobody can go on now: the clock moves to when somebody can."""
        heads = self.loop.world.heads(_FOREVER, between=True)
        when = min(until, heads[0].at) if heads else until
        if when == _FOREVER:
            self.stuck = Deadlocked()
            self.stuck.code, self.stuck.lines = self._code(lock), self._who_waits()
            self._abort(self.stuck)
        self.loop._move(when, waited=0.0)

    def _code(self, lock: Lock | None) -> str:
        """Locks taken in two orders are a deadlock; all else is a loop that waits for itself."""
        among_threads = len(self.blocked()) > 1
        return "HF431" if among_threads or isinstance(lock, ProgramLock) else "HF423"

    def _who_waits(self) -> tuple[str, ...]:
        return (f"the loop's thread waits in {standing(sys._getframe(1))}", *self.blocked())

    def blocked(self) -> tuple[str, ...]:
        """The threads that wait for something, each with what and where."""
        return tuple(
            f"{worker.name} waits in {standing(frame_of(worker.ident))}"
            for worker in self.workers
            if worker.waits and not worker.ended
        )

    # --- threads come and go -----------------------------------------------------------------

    def hire(self, thread: Any, what: str, body: Callable[[Worker], object]) -> Worker:
        """A new thread, which waits for its first turn."""
        worker = Worker(self, thread, f"thread {len(self.workers) + 1} ({what})", body)
        self.workers.append(worker)
        return worker

    def complain(self, worker: Worker, error: BaseException) -> None:
        """An error that nobody has caught in a thread."""
        if threading.excepthook is not self._hook:  # the program's own handles it
            args = (type(error), error, error.__traceback__, worker.thread)
            threading.excepthook(threading.ExceptHookArgs(args))
        elif not self.loop.settling:
            message = f"unhandled error in {worker.name}"
            self.loop.complaints.append({"message": message, "exception": error})

    def meddled(self, what: str) -> None:
        """A thread that takes no part in the run has changed something in it."""
        self.loop.uncontrolled = Uncontrolled(
            what,
            "it was done by a thread that the program did not start in this run",
            "start the thread, or the executor, inside the program",
        )

    def end(self) -> None:
        """The run is over: whoever still stands somewhere is ended there."""
        for worker in self.workers:
            worker.doomed = True
            if worker.idle:  # nothing of the program's is left there to wait for
                worker.retire()
            worker.lost |= self.lost or worker.ended
        for worker in self.workers:
            if worker.gate.locked():
                worker.gate.release()
            if not worker.lost:
                self._gate.acquire(timeout=self.patience)
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
    loop._quiet_until = 0
