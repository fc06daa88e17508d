"""Delivery: one call at a time, the end last and once, from whatever thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reactivex.abc import ObserverBase

from handfast.bridges.reactivex._delivery import Delivery


class Log(ObserverBase[str]):
    """Records the calls of an observer; `react` is called with each value."""

    def __init__(self, react: Callable[[str], object] = lambda value: None) -> None:
        self.calls: list[str] = []
        self._react = react

    def on_next(self, value: str) -> None:
        self.calls.append(value)
        self._react(value)
        self.calls.append(f"{value} taken")

    def on_error(self, error: Exception) -> None:
        self.calls.append(repr(error))

    def on_completed(self) -> None:
        self.calls.append("completed")


def delivery_to(log: Log, *, ordered: bool = False) -> Delivery[str]:
    return Delivery(log, ordered=ordered, on_delivered=lambda: None)


def test_an_outcome_that_comes_during_a_call_is_delivered_after_it() -> None:
    log = Log(lambda value: delivery.deliver(1, "b") if value == "a" else None)
    delivery = delivery_to(log)
    delivery.reserve(), delivery.reserve()
    delivery.deliver(0, "a")
    assert log.calls == ["a", "a taken", "b", "b taken"]


def test_the_end_waits_for_the_outcome_of_every_item_and_only_the_first_end_counts() -> None:
    log = Log()
    delivery = delivery_to(log, ordered=True)
    positions = [delivery.reserve() for _ in "ab"]
    delivery.end(OSError("lost"))
    delivery.end()
    delivery.deliver(positions[1], "b")
    assert (log.calls, delivery.completed) == ([], False)
    delivery.deliver(positions[0], "a")
    assert log.calls == ["a", "a taken", "b", "b taken", "OSError('lost')"]
    assert delivery.completed
    delivery.end()
    assert log.calls[-1] == "OSError('lost')"


def test_an_observer_that_fails_is_not_called_again() -> None:
    def fail(value: str) -> None:
        raise KeyError(value)

    log = Log(fail)
    delivery = delivery_to(log)
    delivery.reserve(), delivery.reserve()
    with pytest.raises(KeyError):
        delivery.deliver(0, "a")
    delivery.deliver(1, "b")
    delivery.end()
    assert log.calls == ["a"]


def test_nothing_is_delivered_after_a_stop() -> None:
    log = Log(lambda value: delivery.stop())
    delivery = delivery_to(log)
    delivery.reserve(), delivery.reserve()
    delivery.deliver(0, "a")
    delivery.deliver(1, "b")
    delivery.end()
    assert log.calls == ["a", "a taken"]
