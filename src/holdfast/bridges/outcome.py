"""How one item ended, as a value: it finished, it failed, or it was cancelled.

A stream ends with its first error. So what becomes of a single item may not be an error of the
stream: it is carried along in one of these, with the item that it is about (S2.4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Outcome", "settled"]

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Item, Value]):
    """How the work on `item` ended: exactly one of `finished`, `failed`, `cancelled` is true.

    >>> [Outcome(4, value=2.0).finished, Outcome(-4, error=ValueError("negative")).failed]
    [True, True]
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
        """The value; or the error is raised. `concurrent.futures.CancelledError` if it was
        cancelled: whoever reads of that is not cancelled himself."""
        if self.cancelled:
            raise CancelledError(f"the work on {self.item!r} was cancelled")
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    @classmethod
    def of(cls, item: Item, future: Future[Value]) -> Outcome[Item, Value]:
        """What a future that is done has come to."""
        if future.cancelled():
            return cls(item, cancelled=True)
        error = future.exception()
        return cls(item, future.result()) if error is None else cls(item, error=error)


async def settled(item: Item, work: Callable[[], Awaitable[Value]]) -> Outcome[Item, Value]:
    """Do the `work` on `item`. An error is an outcome; a cancel is none, and goes on."""
    try:
        return Outcome(item, await work())
    except Exception as error:
        return Outcome(item, error=error)
