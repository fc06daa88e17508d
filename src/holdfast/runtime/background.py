"""A loop in a thread of its own, for programs that are not async themselves.

It has one scope for all that is started there. Closing it goes in the right order: the tasks,
what nobody owned, the executor, the loop, the thread. It keeps S4.3, S4.4 and S4.8.
"""

from __future__ import annotations

import asyncio
import atexit
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import ParamSpec, TypeVar

from holdfast.origin import Origin
from holdfast.runtime.closing import report_on
from holdfast.runtime.durations import seconds
from holdfast.runtime.patience import CUT, out_of_reach
from holdfast.runtime.pool import Pool, thread_straggler
from holdfast.runtime.report import CloseReport, Straggler
from holdfast.runtime.scope import DEADLINE, Scope
from holdfast.runtime.winding import drive, wind_down

__all__ = ["BackgroundLoop"]

T = TypeVar("T")
P = ParamSpec("P")

# A loop that was dropped has so many seconds to end what runs on it.
_LAST_CALL = 1.0


class BackgroundLoop:
    """An event loop in a daemon thread, with a scope.

    >>> async def fetch(n):
    ...     return n + 1
    >>> with BackgroundLoop("prefetch") as background:
    ...     background.submit(fetch, 41).result()
    42

    It must be closed, with `with` or with `close()`. If it is not, that is said aloud, and it
    is closed when it is dropped, or when the program ends.
    """

    _life: _Life | None = None  # until __init__ has got so far

    def __init__(self, name: str = "holdfast", *, grace: float | None = None) -> None:
        self.name = name
        self.origin = Origin.here(1)
        self.scope = Scope(name, on_failure="report", grace=grace)
        self.scope._roster.origin = self.origin
        self.scope._roster.loop = None  # not the one that may be running here
        self._closing = threading.Lock()
        self._report: CloseReport | None = None
        self._life = _Life(name, self.scope)
        # Through a weak reference, so that a dropped loop is noticed before the very end.
        self._at_exit = _closer(weakref.ref(self))
        atexit.register(self._at_exit)

    def submit(
        self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run `await function(*args, **kwargs)` on the loop. See `Scope.submit`."""
        return self.scope._inbox.submit(function, args, kwargs, sys._getframe(1))

    @property
    def closed(self) -> bool:
        """The thread has ended, and nothing runs there any more."""
        return self._life is None or not self._life.thread.is_alive()

    def close(self, *, grace: float | None = None, timeout: float = DEADLINE) -> CloseReport:
        """Close the scope, then all else on the loop, then the loop and its thread.

        From any thread but its own. Returns within `timeout`; who is still there is in the
        report, and a later call looks again.
        """
        timeout = seconds("timeout", timeout)
        life = self._life
        assert life is not None
        if threading.current_thread() is life.thread:
            raise RuntimeError(
                f"the background loop {self.name!r} cannot wait in its own thread for its own "
                "end; let whoever made it close it"
            )
        until = time.monotonic() + timeout
        if not self._closing.acquire(timeout=timeout):  # somebody else closes it
            return life.report()
        try:
            if self._report is None or life.thread.is_alive():
                self.scope.close_from_thread(grace=grace, timeout=timeout)
                life.end(until)
                self._report = life.report()
            atexit.unregister(self._at_exit)
            return self._report
        finally:
            self._closing.release()

    def __enter__(self) -> BackgroundLoop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        report = self.close()
        if error is None:
            report.raise_if_unclean()
        elif not report.clean:
            error.add_note(str(report))

    def __del__(self) -> None:
        if self._life is not None and self._life.thread.is_alive():
            atexit.unregister(self._at_exit)
            self._complain("dropped")
            self._life.stop()

    def _complain(self, what: str) -> None:
        names = ", ".join(sorted({task.get_name() for task in self.scope.tasks})[:10]) or "none"
        warnings.warn(
            f"the background loop {self.name!r}, made at {self.origin}, was {what} without "
            f"close; it is closed now. Its tasks: {names}",
            ResourceWarning,
            source=self,
            stacklevel=3,
        )


class _Life:
    """The thread and its loop. It does not know the BackgroundLoop, so that one can be dropped,
    and say so, while the thread runs."""

    def __init__(self, name: str, scope: Scope) -> None:
        self._scope = scope
        self._loop = asyncio.new_event_loop()
        self._pool = Pool(self._loop, name)
        self._left: list[Straggler] = []
        self._born = time.monotonic()
        # When all must be over; unknown until somebody closes it, or it was dropped.
        self._until: float | None = None
        self._joined = False
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            self.thread.start()
        except BaseException:
            self._loop.close()
            raise
        self._ready.wait()

    def _run(self) -> None:
        """The thread, from beginning to end."""
        asyncio.set_event_loop(self._loop)
        # One run for all of it: between two runs a loop counts as stopped.
        life = self._loop.create_task(self._live(), name=f"holdfast: {self.thread.name}")
        out_of_reach(life)
        flown = drive(self._loop, life, self._over.set)
        self._left += self._pool.end(self._time_left())
        if self._left and not self._joined:
            message = f"still there at the end of {self.thread.name!r}: " + "; ".join(
                str(straggler) for straggler in self._left
            )
            self._loop.call_exception_handler({"message": message})
        self._loop.close()
        if flown:
            raise flown[0]

    async def _live(self) -> None:
        self._scope._roster.bind()
        self._ready.set()
        await self._over.wait()
        if not self._scope.closed:  # dropped, or stopped from inside
            await self._scope.close(deadline=self._time_left())
        # Those that a close has not ended stand in the report of the scope.
        known = self._scope.tasks if self._joined else ()
        self._left += await wind_down(deadline=self._time_left(), known=known)

    def _time_left(self) -> float:
        """For the next part of the end: a little less than there is, so that the whole of it is
        in time."""
        if self._until is None:
            self._until = time.monotonic() + _LAST_CALL
        return max(0.0, self._until - time.monotonic()) * CUT

    def end(self, until: float) -> None:
        """Stop the loop and wait for the thread."""
        self._until = until
        self._joined = True
        self.stop()
        self.thread.join(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._over.set)

    def report(self) -> CloseReport:
        """How all of it stands now."""
        report = report_on(self._scope._roster)
        left = [*report.stragglers, *self._left]
        if self.thread.is_alive():
            left.append(thread_straggler(self.thread, self._born))
        return replace(report, stragglers=tuple(left))


def _closer(background: weakref.ref[BackgroundLoop]) -> Callable[[], None]:
    def close() -> None:
        if (alive := background()) is not None:
            alive._complain("left open to the end of the program")
            report = alive.close()
            if not report.clean:
                sys.stderr.write(f"{report}\n")

    return close
