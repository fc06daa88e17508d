"""The part of the explored loop that deals with threads: who may hand over to it, and what of
them is left when the program has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVarTuple

from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.twins.threads.baton import Baton
from holdfast.explore.twins.threads.locks import Lock
from holdfast.explore.twins.threads.members import MEMBERS, get_ident
from holdfast.explore.twins.threads.patches import install, remove
from holdfast.explore.twins.threads.pools import Pool
from holdfast.explore.twins.threads.words import frame_of, name_of, standing
from holdfast.explore.twins.threads.worker import Worker

if TYPE_CHECKING:
    from collections import deque

    from holdfast.explore.world import World

__all__ = ["Threads"]

_Ts = TypeVarTuple("_Ts")
LeftOver = tuple[str, str, tuple[str, ...]]
_FOREVER = float("inf")
# The turns that the jobs of the default executor get to come to an end.
_LAST_TURNS = 1_000


class Threads:
    """A mixin for the explored loop."""

    if TYPE_CHECKING:
        _ready: deque[asyncio.Handle]
        _default_executor: Any
        uncontrolled: Uncontrolled | None

        world: World

        def settle(self, *, limit: int = 0, seconds: float = 0.0) -> None: ...
        def _move(self, now: float, *, waited: float) -> None: ...
        def is_running(self) -> bool: ...

    _baton: Baton | None = None

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        super().prepare(*args, **kwargs)  # type: ignore[misc]
        install()
        self._baton = Baton(self)

    def close(self) -> None:
        baton = self._baton
        if baton is not None and not self.is_running():
            try:
                baton.end()
            finally:
                self._baton = None
                remove()
        super().close()  # type: ignore[misc]

    # --- hand-overs ----------------------------------------------------------------------------

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Ts], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """From a thread of the program: it stands still until the loop has got it."""
        member = MEMBERS.get(get_ident())
        baton = self._baton
        if baton is None or member is baton:
            handle: asyncio.Handle = super().call_soon_threadsafe(  # type: ignore[misc]
                callback, *args, context=context
            )
            return handle
        handle = asyncio.Handle(callback, args, self, context)  # type: ignore[arg-type]
        if isinstance(member, Worker) and member.baton is baton:
            label = f"{member.name} hands over {name_of(callback)}"
            member.hand_over(label, lambda: self._ready.append(handle))
        else:
            baton.meddled("loop.call_soon_threadsafe")
        return handle

    # --- what is left --------------------------------------------------------------------------

    def _left_over_threads(self) -> LeftOver | None:
        """The code, the message and the lines of threads and executors that are left."""
        baton = self._baton
        if baton is None or not baton.workers:
            return None
        default = baton.pools.get(self._default_executor)
        if default is not None and default.unfinished:
            # `asyncio.run` waits for these before it returns, and lets the loop go on meanwhile.
            self._finish(default)
        return _running(baton) or _left_open(baton, default)

    def _finish(self, pool: Pool) -> None:
        """Let time pass for the threads alone, until the jobs are done."""
        for _ in range(_LAST_TURNS):
            heads = self.world.heads(_FOREVER, between=True)
            if not heads or not pool.unfinished:
                return
            self._move(heads[0].at, waited=0.0)
            self.settle()

    def _blocked_threads(self) -> tuple[str, ...]:
        """Who waits for what, for the verdict of a deadlock."""
        return () if self._baton is None else self._baton.blocked()


def _running(baton: Baton) -> LeftOver | None:
    idle = {worker for pool in baton.pools.values() for worker in pool.workers if worker.idle}
    left = [worker for worker in baton.workers if not worker.ended and worker not in idle]
    if not left:
        return None
    what = "1 thread is" if len(left) == 1 else f"{len(left)} threads are"
    lines = tuple(f"{worker.name}: {standing(frame_of(worker.ident))}" for worker in left)
    return "HF711", f"{what} still running when the program has ended", lines


def _left_open(baton: Baton, default: Pool | None) -> LeftOver | None:
    left = [
        pool
        for executor, pool in baton.pools.items()
        if pool is not default and not executor._shutdown and _born_in(executor, baton)
    ]
    if not left:
        return None
    what = "1 executor was" if len(left) == 1 else f"{len(left)} executors were"
    lines = tuple(f"{pool.name}, first used at {pool.used_at}" for pool in left)
    return "HF712", f"{what} not shut down when the program has ended", lines


def _born_in(executor: Any, baton: Baton) -> bool:
    """One that was there before the run may outlive it."""
    lock = executor._shutdown_lock
    return isinstance(lock, Lock) and lock.born_in == baton.number
