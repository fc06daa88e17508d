"""How a piece of work ended, as a value: finished, failed or cancelled.

The bridges use it because a stream of reactivex ends with its first error, so the error of a
single item must not be an error of the stream. The explorer uses it for a task that it cancels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item, Value]):
    """How the work on `item` ended: exactly one of `finished`, `failed`, `cancelled` is true.

    >>> Outcome(4, value=2.0).finished
    True
    >>> Outcome(-4, error=ValueError("negative")).failed
    True
    """

    item: Item
    value: Value | None = None
    error: BaseException | None = None
    cancelled: bool = False

    @property
    def finished(self) -> bool:
        return self.error is None and not self.cancelled

    @property
    def failed(self) -> bool:
        return self.error is not None

    def result(self) -> Value:
        """Return the value, or raise the error.

        Raises `concurrent.futures.CancelledError` if the work was cancelled: asyncio's would say
        that the caller is cancelled.
        """
        if self.cancelled:
            raise CancelledError(f"the work on {self.item!r} was cancelled")
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    @classmethod
    def of(cls, item: Item, future: Future[Value] | asyncio.Future[Value]) -> Outcome[Item, Value]:
        """Return the outcome of a future that is done."""
        if future.cancelled():
            return cls(item, cancelled=True)
        error = future.exception()
        return cls(item, future.result()) if error is None else cls(item, error=error)


async def settled(item: Item, work: Callable[[], Awaitable[Value]]) -> Outcome[Item, Value]:
    """Do the `work` on `item`. An error becomes an outcome; a cancellation is raised."""
    try:
        return Outcome(item, await work())
    except Exception as error:
        return Outcome(item, error=error)
