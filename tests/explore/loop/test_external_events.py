"""What is on its way from outside: in order on each channel, in any order across them."""

from __future__ import annotations

from handfast._explore.loop.external_events import ExternalEvents


class _Outside:
    def __init__(self) -> None:
        self.now = 10.0
        self.attended = 0
        self.events = ExternalEvents(lambda: self.now, self._attend)

    def _attend(self) -> None:
        self.attended += 1


def _labels(events: ExternalEvents, until: float = 99.0, *, between: bool = False) -> list[str]:
    return [event.label for event in events.next_events(until, between=between)]


def test_a_channel_keeps_its_order_even_if_a_later_event_was_meant_to_be_faster() -> None:
    outside = _Outside()
    channel = outside.events.channel("bytes")
    slow = channel.post(print, label="slow", after=5.0)
    fast = channel.post(print, label="fast", after=1.0)
    assert (slow.at, fast.at) == (15.0, 15.0)
    assert _labels(outside.events) == ["slow"]
    channel.drop(slow)
    assert _labels(outside.events) == ["fast"]


def test_the_heads_of_all_channels_stand_by_time_and_then_in_the_order_of_posting() -> None:
    outside = _Outside()
    for name, after in (("a", 2.0), ("b", 1.0), ("c", 1.0)):
        outside.events.channel(name).post(print, label=name, after=after)
    assert _labels(outside.events) == ["b", "c", "a"]
    assert _labels(outside.events, until=11.0) == ["b", "c"]
    assert outside.events.first() == 11.0


def test_a_hand_over_need_not_wait_for_a_poll_and_the_loop_is_notified() -> None:
    outside = _Outside()
    thread = outside.events.channel("thread", between=True)
    outside.events.channel("bytes").post(print, label="bytes")
    assert (outside.events.between, outside.attended) == (0, 0)
    thread.post(print, label="result")
    thread.post(print, label="another")
    assert (outside.events.between, outside.attended) == (1, 1)
    assert _labels(outside.events, between=True) == ["result"]
    assert _labels(outside.events) == ["bytes", "result"]
    thread.clear()
    assert outside.events.between == 0
    assert _labels(outside.events) == ["bytes"]


def test_nothing_is_on_its_way_once_all_is_dropped() -> None:
    outside = _Outside()
    channel = outside.events.channel("bytes")
    event = channel.post(print, label="3 bytes", faults={"reset": print})
    assert repr(event) == "<3 bytes on bytes at 10.000>"
    channel.clear()
    channel.clear()
    assert outside.events.first() is None
    assert not outside.events.waiting
