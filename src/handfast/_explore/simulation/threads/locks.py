"""The threads that take part in a run, and the locks that they wait for.

All of `threading` and `queue` is made of locks, so controlling locks is enough: a thread that has to
wait for one gives up its turn instead of blocking. For any other thread, and outside a run, each is
the real lock that it contains.
"""

from __future__ import annotations

import queue
import sys
import threading
from _thread import allocate_lock
from _thread import get_ident as get_ident
from typing import TYPE_CHECKING, Any, Protocol

from handfast._explore.loop.stepping import Aborted
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.deciders import Diverged

if TYPE_CHECKING:
    from handfast._explore.simulation.threads.baton import Baton
    from handfast._explore.simulation.threads.worker import Worker


REAL_QUEUE: Any = queue.SimpleQueue
# Saved at import, before a run can replace them.
REAL_RLOCK: Any = threading._CRLock  # type: ignore[attr-defined]
_PY_RLOCK: Any = threading._PyRLock  # type: ignore[attr-defined]
_PY_QUEUE: Any = queue._PySimpleQueue  # type: ignore[attr-defined]
# Locks that these modules create are held for short sections only.
_LIBRARIES = frozenset(
    {"threading", "queue", "concurrent.futures._base", "concurrent.futures.thread"}
)


# `threading.Lock` is a function up to Python 3.12.
RealLock = type(allocate_lock())


class RunEnded(BaseException):
    """Raised in a thread of the program wherever it waits when the run has ended. Not an
    `Exception`, so that the program does not catch it."""


# Errors of the explorer, which may come out of code of the program.
EXPLORER_ERRORS = (RunEnded, Aborted, Diverged, Uncontrolled)


class Member(Protocol):
    """A thread that takes part: the loop's (`Baton`) or one of the program's (`Worker`)."""

    # Whether it woke a waiting thread since `offer_turn` was last called.
    woke: bool

    @property
    def baton(self) -> Baton: ...
    def wait(self, lock: Lock | None, timeout: float) -> bool: ...
    def offer_turn(self) -> None: ...


# By `get_ident()`. Everything that is patched looks here, and does nothing for other threads.
MEMBERS: dict[int, Member] = {}


# --- locks -------------------------------------------------------------------------------------


class Lock:
    """A lock whose waiters the explorer knows."""

    __slots__ = ("__weakref__", "_held", "created_in", "waiters")

    def __init__(self, created_in: int = 0) -> None:
        # The real lock inside: a thread outside the run may hold or release it too.
        self._held = allocate_lock()
        # In the order in which they came. Which of them gets the lock is a choice.
        self.waiters: list[Worker] = []
        # The number of the run, 0 for none.
        self.created_in = created_in

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self.take():
            return True
        if not blocking:
            if timeout != -1:
                raise ValueError("can't specify a timeout for a non-blocking call")
            return False
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        member = MEMBERS.get(get_ident())
        if member is None:
            # A thread outside the run really blocks.
            return self._held.acquire(True, timeout)
        return member.wait(self, timeout)

    def take(self) -> bool:
        """Take it if it is free. Threads that were about to get it keep waiting."""
        if not self._held.acquire(False):
            return False
        for waiter in self.waiters:
            waiter.unwake()
        return True

    def release(self) -> None:
        member = MEMBERS.get(get_ident())
        woke = self.let_go(member)
        if member is not None:
            member.woke |= woke
            # `Condition.notify` wakes its waiters while it holds the lock that they need next, so
            # changing turns here would only add schedules.
            if member.woke and sys._getframe(1).f_code is not _NOTIFY:
                member.offer_turn()

    def let_go(self, member: Member | None) -> bool:
        """Release it without changing turns. Returns whether a thread waited for it."""
        self._held.release()
        for waiter in self.waiters:
            if member is None:
                waiter.baton.changed_from_outside("a lock of the program was released")
            else:
                waiter.wake()
        return bool(self.waiters)

    def locked(self) -> bool:
        return self._held.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} handfast.explore lock>"


_NOTIFY = threading.Condition.notify.__code__


class ProgramLock(Lock):
    """A lock created by code of the program: other threads may run before it is taken."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        member = MEMBERS.get(get_ident())
        if member is not None:
            member.offer_turn()
        return super().acquire(blocking, timeout)


class _LockType(type):
    """`isinstance(lock, threading.Lock)` holds for both kinds."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (Lock, RealLock))


class ProgramLockType(metaclass=_LockType):
    """What `threading.Lock()` creates during a run."""

    def __new__(cls) -> Any:
        member = MEMBERS.get(get_ident())
        if member is None:
            return allocate_lock()
        if sys._getframe(1).f_globals.get("__name__") in _LIBRARIES:
            return Lock(member.baton.number)
        return ProgramLock(member.baton.number)


def lock_inside() -> Any:
    """What `threading` itself creates for a thread that waits for a condition."""
    member = MEMBERS.get(get_ident())
    return allocate_lock() if member is None else Lock(member.baton.number)


def rlock_for_program(*args: Any, **kwargs: Any) -> Any:
    """What `threading.RLock()` creates during a run; called by `threading`."""
    member = MEMBERS.get(get_ident())
    if member is None:
        return REAL_RLOCK(*args, **kwargs)
    # The C version takes its lock without calling `threading`; the Python one can be controlled.
    lock = _PY_RLOCK()
    if sys._getframe(2).f_globals.get("__name__") not in _LIBRARIES:
        lock._block = ProgramLock(member.baton.number)
    return lock


class SimpleQueue(_PY_QUEUE):  # type: ignore[misc]
    """What `queue.SimpleQueue()` creates during a run: the pure Python version."""

    def __new__(cls) -> Any:
        return REAL_QUEUE() if get_ident() not in MEMBERS else object.__new__(cls)
