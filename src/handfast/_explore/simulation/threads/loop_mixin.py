"""The part of the explored loop that deals with threads: hand-overs from them, and what is left of
them when the program has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVarTuple

from handfast._explore.loop.stepped_loop import LeftOver
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.simulation.threads.baton import Baton
from handfast._explore.simulation.threads.executor import Pool
from handfast._explore.simulation.threads.locks import MEMBERS, get_ident
from handfast._explore.simulation.threads.patches import install, remove
from handfast._explore.simulation.threads.worker import Worker, name_of
from handfast._explore.verdict.leftovers import threads_left

if TYPE_CHECKING:
    from collections import deque

    from handfast._explore.loop.external_events import ExternalEvents


_Ts = TypeVarTuple("_Ts")
_FOREVER = float("inf")
# The turns that jobs of the default executor get to end.
_LAST_TURNS = 1_000


class Threads:
    """A mixin for the explored loop."""

    if TYPE_CHECKING:
        _ready: deque[asyncio.Handle]
        _default_executor: Any
        uncontrolled: Uncontrolled | None

        events: ExternalEvents

        def settle(self, *, limit: int = 0, seconds: float = 0.0) -> None: ...
        def _move(self, now: float, *, waited: float) -> None: ...
        def is_running(self) -> bool: ...

    _baton: Baton | None = None

    def prepare(self, stepper: Any) -> None:
        # First: a thread may use the stepper as soon as it runs.
        super().prepare(stepper)  # type: ignore[misc]
        install()
        self._baton = Baton(self)

    def close(self) -> None:
        baton = self._baton
        # `close` of a running loop raises, so the threads must not be ended before that.
        if baton is not None and not self.is_running():
            try:
                baton.end()
            finally:
                self._baton = None
                remove()
        super().close()  # type: ignore[misc]

    # --- hand-overs ----------------------------------------------------------------------------

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As in the stock loop. A thread of the program waits until the hand-over has arrived."""
        member = MEMBERS.get(get_ident())
        baton = self._baton
        # The thread of the loop itself: no hand-over between threads takes place.
        if baton is None or member is baton:
            handle: asyncio.Handle = super().call_soon_threadsafe(  # type: ignore[misc]
                callback, *args, context=context
            )
            return handle
        handle = asyncio.Handle(callback, args, self, context)  # type: ignore[arg-type]
        if isinstance(member, Worker) and member.baton is baton:
            label = f"{member.name} calls call_soon_threadsafe({name_of(callback)})"
            member.hand_over(label, lambda: self._ready.append(handle))
        else:
            baton.changed_from_outside("loop.call_soon_threadsafe")
        return handle

    # --- what is left --------------------------------------------------------------------------

    def _left_over_threads(self) -> LeftOver | None:
        """A thread or executor that the program left."""
        baton = self._baton
        if baton is None or not baton.workers:
            return None
        default = baton.pools.get(self._default_executor)
        if default is not None and default.unfinished:
            # `asyncio.run` waits for these before it returns, while the loop runs.
            self._finish(default)
        return threads_left(baton, default)

    def _finish(self, pool: Pool) -> None:
        """Let time pass for the threads only, until the jobs are done."""
        for _ in range(_LAST_TURNS):
            heads = self.events.next_events(_FOREVER, between=True)
            if not heads or not pool.unfinished:
                return
            self._move(heads[0].at, waited=0.0)
            self.settle()

    def _blocked_threads(self) -> tuple[str, ...]:
        """The threads that wait, for the verdict of a deadlock."""
        return () if self._baton is None else self._baton.blocked()
