"""Delivery: one at a time, the end last and once, whoever brings what."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reactivex.abc import ObserverBase

from holdfast.bridges.reactivex.delivery import Delivery


class Log(ObserverBase[str]):
    """What it was told; it may do something when it is."""

    def __init__(self, react: Callable[[str], object] = lambda value: None) -> None:
        self.told: list[str] = []
        self._react = react

    def on_next(self, value: str) -> None:
        self.told.append(value)
        self._react(value)
        self.told.append(f"{value} taken")

    def on_error(self, error: Exception) -> None:
        self.told.append(repr(error))

    def on_completed(self) -> None:
        self.told.append("completed")


def delivery_to(log: Log, *, ordered: bool = False) -> Delivery[str]:
    return Delivery(log, ordered=ordered, delivered=lambda: None)


def test_what_comes_while_the_observer_is_called_waits_for_its_turn() -> None:
    log = Log(lambda value: delivery.bring(1, "b") if value == "a" else None)
    delivery = delivery_to(log)
    delivery.take(), delivery.take()
    delivery.bring(0, "a")
    assert log.told == ["a", "a taken", "b", "b taken"]


def test_the_end_waits_for_the_outcome_of_every_item_and_the_first_one_counts() -> None:
    log = Log()
    delivery = delivery_to(log, ordered=True)
    places = [delivery.take() for _ in "ab"]
    delivery.end(OSError("lost"))
    delivery.end()
    delivery.bring(places[1], "b")
    assert (log.told, delivery.over) == ([], False)
    delivery.bring(places[0], "a")
    assert log.told == ["a", "a taken", "b", "b taken", "OSError('lost')"]
    assert delivery.over
    delivery.end()
    assert log.told[-1] == "OSError('lost')"


def test_an_observer_that_fails_is_not_called_again() -> None:
    def fail(value: str) -> None:
        raise KeyError(value)

    log = Log(fail)
    delivery = delivery_to(log)
    delivery.take(), delivery.take()
    with pytest.raises(KeyError):
        delivery.bring(0, "a")
    delivery.bring(1, "b")
    delivery.end()
    assert log.told == ["a"]


def test_nothing_is_delivered_after_a_stop() -> None:
    log = Log(lambda value: delivery.stop())
    delivery = delivery_to(log)
    delivery.take(), delivery.take()
    delivery.bring(0, "a")
    delivery.bring(1, "b")
    delivery.end()
    assert log.told == ["a", "a taken"]
