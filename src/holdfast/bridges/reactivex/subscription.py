"""One subscription to `map_async`: from the source, over the scope, to the observer.

Each item is a submission to the scope, so all that holds for those holds here: they start
promptly from any thread, every one is answered, and a scope that closes joins them.
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

from holdfast import HoldfastError, LoopStopped, Scope, ScopeClosed
from holdfast.bridges.outcome import Outcome
from holdfast.bridges.reactivex.delivery import Delivery
from holdfast.bridges.reactivex.room import Overflow, Room, WhenFull, may_block

__all__ = ["Plan", "Subscription"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

# A moment, for an answer that has to look up whether its loop still runs.
_GLANCE = 0.001


@dataclass(frozen=True)
class Plan(Generic[T, R]):
    """What is to be done with each item, and how many there may be."""

    scope: Scope
    function: Callable[[T], Awaitable[R]]
    concurrency: int
    ordered: bool
    buffer: int
    when_full: WhenFull[T]

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.buffer < 0:
            wrong = f"concurrency={self.concurrency!r}, buffer={self.buffer!r}"
            raise ValueError(f"{wrong}: at least one item at once, and a buffer of zero or more")
        if self.when_full not in ("block", "error") and not callable(self.when_full):
            raise ValueError(f'when_full is "block", "error" or a function, not {self.when_full!r}')

    @property
    def capacity(self) -> int:
        return self.concurrency + self.buffer


class Subscription(Generic[T, R]):
    """One source and one observer. What the source does comes in from any thread; the observer is
    called on the loop, as long as that runs."""

    def __init__(self, plan: Plan[T, R], observer: ObserverBase[Outcome[T, R]]) -> None:
        self._plan = plan
        self._room = Room(plan.capacity)
        self._delivery: Delivery[Outcome[T, R]] = Delivery(
            observer, ordered=plan.ordered, delivered=self._room.leave
        )
        self._source = SingleAssignmentDisposable()
        self._turns = asyncio.Semaphore(plan.concurrency)
        self._lock = threading.Lock()
        # Who has not been delivered: the item, and its place in the stream.
        self._answers: dict[Future[R], tuple[T, int]] = {}
        # How many are at work, and where. Changed on the loop's thread only.
        self._working = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._disposed = False
        self.over: Future[None] = Future()
        self.over.set_running_or_notify_cancel()  # from here on nobody can cancel it

    def begin(self, source: Observable[T], scheduler: SchedulerBase | None) -> None:
        self._source.disposable = source.subscribe(
            self._next, self._end, self._end, scheduler=scheduler
        )

    @property
    def items(self) -> list[T]:
        """What is under way."""
        with self._lock:
            return [item for item, _ in self._answers.values()]

    # --- the source's side: any thread ---------------------------------------------------------

    def _next(self, item: T) -> None:
        if not self._admit(item):
            return
        place = self._delivery.take()
        try:
            answer = self._plan.scope.submit(self._work, item)
        except (ScopeClosed, LoopStopped) as refusal:
            self._observe(self._delivery.bring, place, Outcome(item, error=refusal))
            self._fail(refusal)
            return
        with self._lock:
            self._answers[answer] = item, place
        answer.add_done_callback(lambda answer: self._observe(self._bring, answer))
        if self._disposed:  # since it was submitted, and so without this one
            answer.cancel()

    def _admit(self, item: T) -> bool:
        """Whether there is room for it; if not, what `when_full` says has been done."""
        when_full = self._plan.when_full
        if self._room.try_enter():
            return True
        if when_full == "block" and may_block():
            return self._room.enter(self._look)
        if callable(when_full):
            when_full(item)
        else:
            self._fail(self._overflow(item))
        return False

    def _overflow(self, item: T) -> Overflow:
        way_out = "a larger buffer, or when_full=function to drop items"
        if self._plan.when_full == "block":
            way_out = (
                "the source emits in a thread where an event loop runs, which cannot wait: move it "
                f"to another one with ops.subscribe_on or ops.observe_on; or {way_out}"
            )
        return Overflow(f"no room for {item!r}: {self._plan.capacity} are under way; {way_out}")

    def _end(self, error: Exception | None = None) -> None:
        """The source has ended. What is under way is still delivered."""
        self._room.close()
        self._observe(self._delivery.end, error)

    def _fail(self, error: HoldfastError) -> None:
        """The source can go on, but we cannot."""
        self._source.dispose()
        if isinstance(error, LoopStopped):
            self._look()
            for answer in self._pending():
                if answer.done():  # and the loop stopped before it was told
                    self._observe(self._bring, answer)
        self._end(error)

    def _look(self) -> None:
        """Nobody hears that a loop has stopped, except who waits for an answer. So wait a little:
        if the loop does not run, that is the answer of all of them now."""
        with suppress(TimeoutError):  # it does run
            for answer in self._pending():
                with suppress(CancelledError):
                    answer.exception(timeout=_GLANCE)

    def _pending(self) -> list[Future[R]]:
        with self._lock:
            return list(self._answers)

    # --- on the loop -----------------------------------------------------------------------

    async def _work(self, item: T) -> R:
        self._loop = asyncio.get_running_loop()
        self._working += 1
        try:
            async with self._turns:
                if self._disposed:  # whether or not a cancel is on its way
                    raise asyncio.CancelledError
                return await self._plan.function(item)
        finally:
            self._working -= 1
            self._settle_soon()

    def _bring(self, answer: Future[R]) -> None:
        with self._lock:
            entry = self._answers.pop(answer, None)
        if entry is not None:
            item, place = entry
            self._delivery.bring(place, Outcome.of(item, answer))

    # --- the observer's side ---------------------------------------------------------------

    def _observe(self, call: Callable[P, None], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a call that may lead to the observer: on the loop, if there is one that runs."""
        loop = self._loop
        here = asyncio._get_running_loop()
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
        """An observer has failed. There is no emitter that it could be raised to, but for a loop
        that does not run."""
        loop = asyncio._get_running_loop()
        if loop is None:
            raise error
        message = "an observer of map_async failed; its subscription is disposed"
        loop.call_exception_handler({"message": message, "exception": error})

    def dispose(self) -> None:
        """Cancel what is under way, and deliver nothing more. `over` says when all has ended."""
        self._disposed = True
        self._delivery.stop()
        self._room.close()
        self._source.dispose()
        for answer in self._pending():
            answer.cancel()
        self._settle_soon()

    def _settle_soon(self) -> None:
        """See whether all is over: on the loop, after the step in which its last task ends."""
        loop = self._loop
        if not (self._disposed or self._delivery.over):
            return
        if loop is None or not loop.is_running():
            self._settle()
            return
        with suppress(RuntimeError):  # closed meanwhile
            loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self._working and not self._pending():
            with suppress(InvalidStateError):  # somebody else has seen it, too
                self.over.set_result(None)
