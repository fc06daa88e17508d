"""The operator `map_async`, and waiting for its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from handfast import Scope
from handfast._outcome import Outcome
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast.bridges.reactivex._backpressure import WhenFull, may_block
from handfast.bridges.reactivex._subscription import MapOptions, Subscription
from handfast.errors import StragglersLeft

T = TypeVar("T")
R = TypeVar("R")


def map_async(
    scope: Scope,
    function: Callable[[T], Awaitable[R]],
    *,
    concurrency: int = 16,
    ordered: bool = False,
    buffer: int = 64,
    when_full: WhenFull[T] = "block",
) -> MapAsync[T, R]:
    """An operator that awaits `function(item)` on `scope` for each item, emitted in any thread.

    It emits an `Outcome` for each item, so an item that fails does not end the stream.

    >>> import reactivex
    >>> from handfast import BackgroundLoop
    >>> async def invert(n):
    ...     return 1 / n
    >>> with BackgroundLoop() as background:
    ...     mapping = map_async(background.scope, invert, ordered=True)
    ...     stream = reactivex.of(2, 0, 4).pipe(mapping)
    ...     _ = stream.subscribe(lambda outcome: print(outcome.value or outcome.error))
    ...     mapping.join_from_thread()
    0.5
    division by zero
    0.25

    Parameters:
        concurrency: how many items are processed at once. A limit of the scope counts as well.
        ordered: deliver outcomes in the order of the items; otherwise, as they are completed.
        buffer: how many more items may wait to be processed or, if ordered, to be delivered.
        when_full: what to do with an item beyond that. "block": the emitting thread waits; if an
            event loop runs in it, it cannot, and the stream ends with `Overflow`. "error": the
            stream ends with `Overflow`. A function: the item is dropped, and the function is
            called with it.
    """
    return MapAsync(MapOptions(scope, function, concurrency, ordered, buffer, when_full))


class MapAsync(Generic[T, R]):
    """The result of `map_async`: an operator for `pipe` that can be joined."""

    def __init__(self, options: MapOptions[T, R]) -> None:
        self._options = options
        # Subscriptions by the future of their end, which removes them.
        self._alive: dict[Future[None], Subscription[T, R]] = {}

    def __call__(self, source: Observable[T]) -> Observable[Outcome[T, R]]:
        def subscribe(
            observer: ObserverBase[Outcome[T, R]], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            subscription = Subscription(self._options, observer)
            self._alive[subscription.ended] = subscription
            subscription.ended.add_done_callback(lambda ended: self._alive.pop(ended, None))
            subscription.start(source, scheduler)
            return Disposable(subscription.dispose)

        return Observable(subscribe)

    async def join(self, *, timeout: float = CLOSE_TIMEOUT) -> None:
        """Wait until every subscription is completed or disposed and its tasks have ended.

        Raises `StragglersLeft`, which names the items, after `timeout` seconds.
        """
        ends = [asyncio.wrap_future(ended) for ended in self._alive.copy()]
        try:
            if ends:
                await asyncio.wait(ends, timeout=timeout)
        finally:
            for ended in ends:
                ended.cancel()  # otherwise it may call a loop that is closed by then
        self._require_ended(timeout)

    def join_from_thread(self, *, timeout: float = CLOSE_TIMEOUT) -> None:
        """Like `join`, for a thread that may block."""
        if not may_block():
            raise RuntimeError(
                "join_from_thread() would block the event loop that runs in this thread; here "
                "use: await mapping.join()"
            )
        wait(self._alive.copy(), timeout=timeout)
        self._require_ended(timeout)

    def _require_ended(self, seconds: float) -> None:
        alive = [each for ended, each in self._alive.copy().items() if not ended.done()]
        if alive:
            items = [repr(item) for each in alive for item in each.items][:10]
            raise StragglersLeft(
                f"subscriptions to map_async that have not ended within {seconds:g} s: {len(alive)};"
                f" in flight: {', '.join(items) or 'nothing; the source has not ended'}"
            )
