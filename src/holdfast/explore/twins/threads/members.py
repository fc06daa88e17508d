"""Who takes part in a run: the thread of its loop, and the threads that the program has started.

Everything that is patched asks here first, and leaves whoever is no member to the real thing.
"""

from __future__ import annotations

from _thread import allocate_lock
from _thread import get_ident as get_ident
from typing import TYPE_CHECKING, Protocol

from holdfast.explore.deciders import Diverged
from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.stepping import Aborted

if TYPE_CHECKING:
    from holdfast.explore.twins.threads.baton import Baton
    from holdfast.explore.twins.threads.locks import Lock

__all__ = ["MEMBERS", "NOT_THEIRS", "Ended", "Member", "RealLock", "allocate_lock", "get_ident"]

# `threading.Lock` is a function up to Python 3.12.
RealLock = type(allocate_lock())


class Ended(BaseException):
    """The run is over: raised in a thread of the program wherever it waits. No `Exception`: the
    program must not catch it."""


# What is the explorer's own when it comes out of the program's code.
NOT_THEIRS = (Ended, Aborted, Diverged, Uncontrolled)


class Member(Protocol):
    """A thread that takes part: the loop's (`Baton`) or one of the program's (`Worker`)."""

    # Whether it has let somebody go on who had to wait, since it was last asked.
    woke: bool

    @property
    def baton(self) -> Baton: ...
    def wait(self, lock: Lock | None, timeout: float) -> bool: ...
    def offer_turn(self) -> None: ...


# By the identity of the thread.
MEMBERS: dict[int, Member] = {}
