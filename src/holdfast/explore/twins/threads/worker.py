"""One thread of the program: real, and still wherever it does not hold the baton.

It gives the baton back at its hand-overs, where it must wait, and at its end. What lets it go on
is an event of its own channel, so its events keep their order.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.explore import clocks
from holdfast.explore.twins.threads.locks import Lock
from holdfast.explore.twins.threads.members import (
    MEMBERS,
    NOT_THEIRS,
    Ended,
    allocate_lock,
    get_ident,
)

if TYPE_CHECKING:
    from holdfast.explore.twins.threads.baton import Baton
    from holdfast.explore.twins.threads.pools import Pool
    from holdfast.explore.world import Event

__all__ = ["Handle", "Worker"]

# So often a thread is told that the run is over. One that catches everything is left where it is.
_PATIENCE = 100
# So many naps of no length are free; from then on each takes some time, as on any machine.
_NAPS = 100
_NAP = 0.001


class Worker:
    """A thread, started, and without its turn until `Baton.give`."""

    __slots__ = (
        "_alarm", "_naps", "_refusals", "alarms", "baton", "body", "channel", "doomed", "ended",
        "finished", "gate", "ident", "idle", "last", "lost", "name", "pool", "ready", "thread",
        "timed_out", "waits", "woke",
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
        self.gate = allocate_lock()
        self.gate.acquire()
        # Held until the thread has ended: `join` waits for it.
        self.finished = Lock()
        self.finished.take()
        self.woke = False
        self.waits = False
        self.idle = False
        self.ended = False
        # The executor's threads to which it belongs; and whether the hand-over that comes next is
        # the last thing of its job, so that it need not stand still for it.
        self.pool: Pool | None = None
        self.last = False
        self.doomed = False
        self.lost = False
        self.timed_out = False
        self.ready: Event | None = None
        self._alarm: Event | None = None
        self._refusals = 0
        self._naps = 0
        self.ident = _thread.start_new_thread(self._main, ())
        _begin(thread, self)

    # --- in the thread -----------------------------------------------------------------------

    def _main(self) -> None:
        # As `Thread._bootstrap` does it for debuggers, profilers and coverage.
        sys.settrace(threading.gettrace())
        sys.setprofile(threading.getprofile())
        self._live()

    def _live(self) -> None:
        MEMBERS[get_ident()] = self
        clocks.LOOPS[get_ident()] = self.baton.loop
        try:
            self._await_turn()
            if not self.doomed:
                self.body(self)
        except NOT_THEIRS as error:
            if not self.doomed:
                self.baton.failure = error
        except BaseException as error:
            if not (self.doomed or isinstance(error, SystemExit)):
                self.baton.complain(self, error)
        finally:
            self.retire()
            del MEMBERS[get_ident()], clocks.LOOPS[get_ident()]
            self.baton.returned(self)

    def retire(self) -> None:
        """As the program sees it, the thread has ended."""
        if not self.ended:
            self.ended = True
            _finish(self.thread, self.ident)
            if self.finished.locked():  # an interrupted `join` releases it, up to Python 3.12
                self.finished.let_go(self)

    def park(self) -> None:
        """Give the baton back, and stand still until it comes again."""
        self.refuse_if_over()
        self.baton.returned(self)
        self._await_turn()
        self.refuse_if_over()

    def _await_turn(self) -> None:
        seen = None
        while not self.gate.acquire(timeout=self.baton.patience):
            seen = self.baton.looked_after(seen)

    def refuse_if_over(self) -> None:
        """The run is over: end wherever this stands."""
        if self.doomed:
            self._refusals += 1
            if self._refusals > _PATIENCE:
                self.baton.returned(self)
                self.lost = True
                self.gate.acquire()
            raise Ended

    def hand_over(self, label: str, arrive: Callable[[], object]) -> None:
        """Something for the loop. Once it has come the thread goes on: at once, or later."""
        self.refuse_if_over()
        if self.last and self.pool is not None:
            self.last = False
            self.channel.post(partial(self._end_of_job, arrive, self.pool), label=label)
        else:
            self.channel.post(partial(self._handed_over, arrive), label=label)
            self.park()

    def _handed_over(self, arrive: Callable[[], object]) -> None:
        arrive()
        if self._loses_its_turn():
            self.wake()
        else:
            self.baton.give(self)

    def _end_of_job(self, arrive: Callable[[], object], pool: Pool) -> None:
        """No code of the program follows in this thread, so it needs no turn."""
        arrive()
        pool.done(self)

    def offer_turn(self) -> None:
        """Another may have its turn first."""
        self.woke = False
        if not self.doomed and self._loses_its_turn():
            self.wake()
            self.park()

    def _loses_its_turn(self) -> bool:
        answer = self.baton.loop.choose(
            "thread", 2, lambda: (self.name, ""), lambda _: f"{self.name} loses its turn"
        )
        return bool(answer)

    def wait(self, lock: Lock | None, timeout: float) -> bool:
        """Until `lock` is taken, or the time is up. Without a lock: sleep."""
        self.refuse_if_over()
        self.timed_out = False
        if timeout == 0:
            # Turns without time would keep the clock from moving for ever.
            self._naps += 1
            timeout = 0.0 if self._naps < _NAPS else _NAP
        if timeout >= 0:
            label = f"the time that {self.name} waits is up"
            self._alarm = self.alarms.post(self._ring, label=label, after=timeout)
        if lock is not None:
            lock.waiters.append(self)
        self.waits = True
        try:
            while True:
                self.park()
                if lock is not None and lock.take():
                    return True
                if self.timed_out:
                    return False
        finally:
            self.waits = False
            self.calm()
            if lock is not None:
                lock.waiters.remove(self)
            if self._alarm is not None:
                self.alarms.drop(self._alarm)
                self._alarm = None

    # --- for whoever has the baton -----------------------------------------------------------

    def wake(self) -> None:
        """What it waits for can be had."""
        if self.ready is None:
            self.ready = self.channel.post(self._go_on, label=f"{self.name} goes on")

    def calm(self) -> None:
        """It cannot be had any more."""
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
    """What a thread of Python 3.13 asks about its own end."""

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
    """What `Thread.start` and `Thread._bootstrap` would write down."""
    thread._ident = worker.ident
    if hasattr(thread, "_handle"):
        thread._handle = Handle(worker.finished, worker.ident)
    else:
        thread._tstate_lock = worker.finished
    thread._started.set()
    threading._active[worker.ident] = thread  # type: ignore[attr-defined]


def _finish(thread: Any, ident: int) -> None:
    active = threading._active  # type: ignore[attr-defined]
    if active.get(ident) is thread:
        del active[ident]
