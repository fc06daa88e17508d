"""An observer that records its calls, and that a thread can wait for."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

from reactivex.abc import ObserverBase

from handfast._outcome import Outcome

T = TypeVar("T")


class RecordingObserver(ObserverBase[Outcome[T, Any]], Generic[T]):
    """The outcomes, the threads of the calls, and how the stream ended."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome[T, Any]] = []
        self.threads: set[threading.Thread] = set()
        self.error: Exception | None = None
        self.completed = False
        self.ended = threading.Event()
        self._inside = False

    def on_next(self, value: Outcome[T, Any]) -> None:
        assert not self._inside
        assert not self.ended.is_set()
        self._inside = True
        self.threads.add(threading.current_thread())
        self.outcomes.append(value)
        self._inside = False

    def on_error(self, error: Exception) -> None:
        assert not self.ended.is_set()
        self.error = error
        self.ended.set()

    def on_completed(self) -> None:
        assert not self.ended.is_set()
        self.completed = True
        self.ended.set()

    def wait(self) -> None:
        assert self.ended.wait(10)

    @property
    def values(self) -> list[Any]:
        return [outcome.value for outcome in self.outcomes]


def describe(outcome: Outcome[Any, Any]) -> str:
    """Return the outcome as a short text."""
    if outcome.cancelled:
        return f"{outcome.item} cancelled"
    if outcome.failed:
        return f"{outcome.item} failed: {type(outcome.error).__name__}"
    return f"{outcome.item} -> {outcome.value}"
