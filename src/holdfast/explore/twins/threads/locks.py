"""What the threads of a run wait for. All of `threading` and `queue` is made of locks, so it is
enough to see those: who must wait for one gives the turn back instead of blocking for real.

Outside a run, or in the hands of a thread that is no member, each is the real thing inside it.
"""

from __future__ import annotations

import queue
import sys
import threading
from typing import TYPE_CHECKING, Any

from holdfast.explore.twins.threads.members import (
    MEMBERS,
    Member,
    RealLock,
    allocate_lock,
    get_ident,
)

if TYPE_CHECKING:
    from holdfast.explore.twins.threads.worker import Worker

__all__ = [
    "REAL_QUEUE", "REAL_RLOCK", "Lock", "ProgramLock", "ProgramLockType", "SimpleQueue",
    "lock_inside", "rlock_for_program",
]  # fmt: skip

REAL_QUEUE: Any = queue.SimpleQueue
REAL_RLOCK: Any = threading._CRLock  # type: ignore[attr-defined]
_PY_RLOCK: Any = threading._PyRLock  # type: ignore[attr-defined]
_PY_QUEUE: Any = queue._PySimpleQueue  # type: ignore[attr-defined]
# Locks that these make belong to something larger, which never holds one for long.
_LIBRARIES = frozenset(
    {"threading", "queue", "concurrent.futures._base", "concurrent.futures.thread"}
)


class Lock:
    """A lock whose waiters the explorer knows."""

    __slots__ = ("__weakref__", "_held", "born_in", "waiters")

    def __init__(self, born_in: int = 0) -> None:
        self._held = allocate_lock()
        # Those that wait for it, in the order in which they came. Which of them gets it is open.
        self.waiters: list[Worker] = []
        # The number of the run, 0 for none.
        self.born_in = born_in

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
            return self._held.acquire(True, timeout)
        return member.wait(self, timeout)

    def take(self) -> bool:
        """Take it if it is free. Who else was about to get it, waits on."""
        if not self._held.acquire(False):
            return False
        for waiter in self.waiters:
            waiter.calm()
        return True

    def release(self) -> None:
        member = MEMBERS.get(get_ident())
        woke = self.let_go(member)
        if member is not None:
            member.woke |= woke
            # A condition wakes its waiters under its own lock, which they need next: that is no
            # moment for a change of turns.
            if member.woke and sys._getframe(1).f_code is not _NOTIFY:
                member.offer_turn()

    def let_go(self, member: Member | None) -> bool:
        """Release it, and no more. Whether somebody waited for it."""
        self._held.release()
        for waiter in self.waiters:
            if member is None:
                waiter.baton.meddled("a lock of the program was released")
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
        return f"<{'locked' if self.locked() else 'unlocked'} holdfast.explore lock>"


_NOTIFY = threading.Condition.notify.__code__


class ProgramLock(Lock):
    """One that the program's own code has made: others may have their turn before it is taken."""

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
    """What `threading.Lock()` makes during a run."""

    def __new__(cls) -> Any:
        member = MEMBERS.get(get_ident())
        if member is None:
            return allocate_lock()
        if sys._getframe(1).f_globals.get("__name__") in _LIBRARIES:
            return Lock(member.baton.number)
        return ProgramLock(member.baton.number)


def lock_inside() -> Any:
    """What `threading` itself makes for whoever waits on a condition."""
    member = MEMBERS.get(get_ident())
    return allocate_lock() if member is None else Lock(member.baton.number)


def rlock_for_program(*args: Any, **kwargs: Any) -> Any:
    """What `threading.RLock()` makes during a run; it is `threading` that calls this."""
    member = MEMBERS.get(get_ident())
    if member is None:
        return REAL_RLOCK(*args, **kwargs)
    lock = _PY_RLOCK()
    if sys._getframe(2).f_globals.get("__name__") not in _LIBRARIES:
        lock._block = ProgramLock(member.baton.number)
    return lock


class SimpleQueue(_PY_QUEUE):  # type: ignore[misc]
    """What `queue.SimpleQueue()` makes during a run: the standard library's own, in Python."""

    def __new__(cls) -> Any:
        return REAL_QUEUE() if get_ident() not in MEMBERS else object.__new__(cls)
