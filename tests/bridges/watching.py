"""An observer that keeps what it gets, and that a thread can wait for."""

from __future__ import annotations

import threading
from typing import Any, Generic, TypeVar

from reactivex.abc import ObserverBase

from holdfast.bridges.outcome import Outcome

T = TypeVar("T")


class Watching(ObserverBase[Outcome[T, Any]], Generic[T]):
    """What has come, in which thread, and how it ended."""

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


def words(outcome: Outcome[Any, Any]) -> str:
    """How it ended, in short."""
    if outcome.cancelled:
        return f"{outcome.item} cancelled"
    if outcome.failed:
        return f"{outcome.item} failed: {type(outcome.error).__name__}"
    return f"{outcome.item} -> {outcome.value}"
