"""One subscription to `map_async`: source, scope and observer.

Each item is submitted to the scope with `Scope.submit`: it starts promptly from any thread, its
future is always resolved, and a scope that closes joins its task.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from reactivex import Observable
from reactivex.abc import ObserverBase, SchedulerBase
from reactivex.disposable import SingleAssignmentDisposable

from handfast import Scope
from handfast._asyncio_internals import running_loop
from handfast._outcome import Outcome
from handfast.bridges.reactivex._backpressure import InFlightLimit, Overflow, WhenFull, may_block
from handfast.bridges.reactivex._delivery import Delivery
from handfast.errors import HandfastError, LoopStopped, ScopeClosed

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

# Seconds to wait for a future, so that it checks whether its loop still runs.
_POLL = 0.001


@dataclass(frozen=True)
class MapOptions(Generic[T, R]):
    """The arguments of `map_async`."""

    scope: Scope
    function: Callable[[T], Awaitable[R]]
    concurrency: int
    ordered: bool
    buffer: int
    when_full: WhenFull[T]

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.buffer < 0:
            wrong = f"concurrency={self.concurrency!r}, buffer={self.buffer!r}"
            raise ValueError(f"{wrong}: concurrency is at least 1, and buffer at least 0")
        if self.when_full not in ("block", "error") and not callable(self.when_full):
            raise ValueError(f'when_full is "block", "error" or a function, not {self.when_full!r}')

    @property
    def capacity(self) -> int:
        return self.concurrency + self.buffer


class Subscription(Generic[T, R]):
    """One source and one observer. The source emits in any thread; the observer is called on the
    event loop as long as that runs."""

    def __init__(self, options: MapOptions[T, R], observer: ObserverBase[Outcome[T, R]]) -> None:
        self._options = options
        self._limit = InFlightLimit(options.capacity)
        self._delivery: Delivery[Outcome[T, R]] = Delivery(
            observer, ordered=options.ordered, on_delivered=self._limit.release
        )
        self._source = SingleAssignmentDisposable()
        self._turns = asyncio.Semaphore(options.concurrency)
        self._lock = threading.Lock()
        # The futures of items that are not delivered: the item, and its position in the stream.
        self._pending: dict[Future[R], tuple[T, int]] = {}
        # How many tasks run, and on which loop. Changed only in the thread of the loop.
        self._running = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._disposed = False
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()  # so that it cannot be cancelled

    def start(self, source: Observable[T], scheduler: SchedulerBase | None) -> None:
        self._source.disposable = source.subscribe(
            self._next, self._end, self._end, scheduler=scheduler
        )

    @property
    def items(self) -> list[T]:
        """The items in flight."""
        with self._lock:
            return [item for item, _ in self._pending.values()]

    # --- the source, in any thread ------------------------------------------------------------

    def _next(self, item: T) -> None:
        if not self._admit(item):
            return
        position = self._delivery.reserve()
        try:
            future = self._options.scope.submit(self._run, item)
        except (ScopeClosed, LoopStopped) as error:
            self._observe(self._delivery.deliver, position, Outcome(item, error=error))
            self._fail(error)
            return
        with self._lock:
            self._pending[future] = item, position
        future.add_done_callback(lambda future: self._observe(self._deliver, future))
        if self._disposed:  # `dispose` ran meanwhile, and did not see this future
            future.cancel()

    def _admit(self, item: T) -> bool:
        """Whether the limit admits the item; if not, `when_full` has been applied."""
        when_full = self._options.when_full
        if self._limit.try_acquire():
            return True
        if when_full == "block" and may_block():
            return self._limit.acquire(self._resolve_if_loop_stopped)
        if callable(when_full):
            when_full(item)
        else:
            self._fail(self._overflow(item))
        return False

    def _overflow(self, item: T) -> Overflow:
        hint = "use a larger buffer, or when_full=function to drop items"
        if self._options.when_full == "block":
            hint = (
                "the source emits in a thread where an event loop runs, which must not block: move "
                f"it to another thread with ops.subscribe_on or ops.observe_on, or {hint}"
            )
        capacity = self._options.capacity
        return Overflow(f"{item!r} is not accepted: {capacity} items are in flight; {hint}")

    def _end(self, error: Exception | None = None) -> None:
        """The source has ended. Items in flight are still delivered."""
        self._limit.close()
        self._observe(self._delivery.end, error)

    def _fail(self, error: HandfastError) -> None:
        """End the stream with an error of ours, and take no more items."""
        self._source.dispose()
        if isinstance(error, LoopStopped):
            self._resolve_if_loop_stopped()
            for future in self._futures():
                if future.done():  # the loop stopped before it ran the callback
                    self._observe(self._deliver, future)
        self._end(error)

    def _resolve_if_loop_stopped(self) -> None:
        """Resolve the futures if the loop has stopped: a future notices that only while a thread
        waits for it."""
        with suppress(TimeoutError):  # the loop runs
            for future in self._futures():
                with suppress(CancelledError):
                    future.exception(timeout=_POLL)

    def _futures(self) -> list[Future[R]]:
        with self._lock:
            return list(self._pending)

    # --- the event loop --------------------------------------------------------------------

    async def _run(self, item: T) -> R:
        self._loop = asyncio.get_running_loop()
        self._running += 1
        try:
            async with self._turns:
                if self._disposed:  # the cancel may not have arrived yet
                    raise asyncio.CancelledError
                return await self._options.function(item)
        finally:
            self._running -= 1
            self._settle_soon()

    def _deliver(self, future: Future[R]) -> None:
        with self._lock:
            entry = self._pending.pop(future, None)
        if entry is not None:
            item, position = entry
            self._delivery.deliver(position, Outcome.of(item, future))

    # --- the observer ----------------------------------------------------------------------

    def _observe(self, call: Callable[P, None], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a call that may call the observer: on the loop, if it runs."""
        loop = self._loop
        here = running_loop()
        if loop is None or loop is here or not loop.is_running():
            self._guarded(partial(call, *args, **kwargs))
        else:
            with suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(self._guarded, partial(call, *args, **kwargs))

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            self.dispose()
            self._report(error)
        finally:
            self._settle_soon()

    def _report(self, error: Exception) -> None:
        """Report the error of an observer to the loop; raise it only if no loop runs here."""
        loop = running_loop()
        if loop is None:
            raise error
        message = "an observer of map_async failed; its subscription is disposed"
        loop.call_exception_handler({"message": message, "exception": error})

    def dispose(self) -> None:
        """Cancel the items in flight, and deliver nothing more. `ended` is set when they are done."""
        self._disposed = True
        self._delivery.stop()
        self._limit.close()
        self._source.dispose()
        for future in self._futures():
            future.cancel()
        self._settle_soon()

    def _settle_soon(self) -> None:
        """Check for the end: on the loop, after the step in which the last task ends."""
        loop = self._loop
        if not (self._disposed or self._delivery.completed):
            return
        if loop is None or not loop.is_running():
            self._settle()
            return
        with suppress(RuntimeError):  # closed meanwhile
            loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self._running and not self._pending:
            with suppress(InvalidStateError):  # another thread was faster
                self.ended.set_result(None)
