"""The operator `map_async`, and waiting for what it has started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable

from holdfast import Scope, StragglersLeft
from holdfast.bridges.outcome import Outcome
from holdfast.bridges.reactivex.room import WhenFull, may_block
from holdfast.bridges.reactivex.subscription import Plan, Subscription

__all__ = ["MapAsync", "map_async"]

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
    """An operator: `await function(item)` on `scope` for each item, from whatever thread emits.

    What comes out is an `Outcome` for each item: one that fails does not end the stream.

    >>> import reactivex
    >>> from holdfast import BackgroundLoop
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
        concurrency: how many items are worked on at once. A limit of the scope counts as well.
        ordered: outcomes come in the order of the items, or else as the work ends.
        buffer: how many more may wait, for their turn or, if ordered, to be delivered.
        when_full: what happens to an item that has no room. "block": the emitting thread waits; in
            one where an event loop runs that is impossible, and the stream ends with `Overflow`.
            "error": the stream ends with `Overflow`. A function: the item is dropped, and the
            function is called with it.
    """
    return MapAsync(Plan(scope, function, concurrency, ordered, buffer, when_full))


class MapAsync(Generic[T, R]):
    """What `map_async` returns: an operator for `pipe`, and a way to wait for what it started."""

    def __init__(self, plan: Plan[T, R]) -> None:
        self._plan = plan
        # Subscriptions by what says that they are over; entries go by themselves.
        self._alive: dict[Future[None], Subscription[T, R]] = {}

    def __call__(self, source: Observable[T]) -> Observable[Outcome[T, R]]:
        def subscribe(
            observer: ObserverBase[Outcome[T, R]], scheduler: SchedulerBase | None = None
        ) -> DisposableBase:
            subscription = Subscription(self._plan, observer)
            self._alive[subscription.over] = subscription
            subscription.over.add_done_callback(lambda over: self._alive.pop(over, None))
            subscription.begin(source, scheduler)
            return Disposable(subscription.dispose)

        return Observable(subscribe)

    async def join(self, *, deadline: float = 10.0) -> None:
        """Wait until every subscription is over, completed or disposed, and its work joined.

        StragglersLeft, which names the items, if that is not so within `deadline` seconds.
        """
        overs = [asyncio.wrap_future(over) for over in self._alive.copy()]
        try:
            if overs:
                await asyncio.wait(overs, timeout=deadline)
        finally:
            for over in overs:
                over.cancel()  # so that none of them calls on a loop that is closed by then
        self._require_over(deadline)

    def join_from_thread(self, *, timeout: float = 10.0) -> None:
        """The same from a thread that may block."""
        if not may_block():
            raise RuntimeError(
                "join_from_thread() would block the event loop that runs in this thread; here "
                "use: await mapping.join()"
            )
        wait(self._alive.copy(), timeout=timeout)
        self._require_over(timeout)

    def _require_over(self, patience: float) -> None:
        alive = [each for over, each in self._alive.copy().items() if not over.done()]
        if alive:
            items = [repr(item) for each in alive for item in each.items][:10]
            raise StragglersLeft(
                f"not over within {patience:g} s: {len(alive)} subscriptions to map_async, at "
                f"work on: {', '.join(items) or 'nothing; the source has not ended'}"
            )
