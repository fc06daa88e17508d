"""Instruments for opentelemetry-api."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from handfast._missing_extra import install_line
from handfast._watch.metrics.place_series import BOUNDS, PlaceMetrics, PlaceReader, Reading

try:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"these metrics need opentelemetry-api: {install_line('metrics')}", name=error.name
    ) from error

_Observe = Callable[[CallbackOptions], Iterator[Observation]]


def opentelemetry_instruments(meter: Meter | None = None) -> None:
    """Create observable instruments for this process's tasks by place of creation.

    At most 50 places have series of their own, the others are summed up as `other`.

    Parameters:
        meter: where to create them; the default is the global provider's meter "handfast".

    >>> from handfast import watch
    >>> watch.opentelemetry_instruments()
    """
    _Instruments(PlaceReader()).create(meter or get_meter("handfast"))


class _Instruments:
    def __init__(self, reader: PlaceReader) -> None:
        self._reader = reader

    def create(self, meter: Meter) -> None:
        """Create all of them."""
        meter.create_observable_gauge(
            "handfast.tasks.alive",
            [self._by_place(lambda each: each.alive)],
            description="Pending tasks, by the line that created them.",
        )
        meter.create_observable_gauge(
            "handfast.tasks.growth",
            [self._by_place(lambda each: each.per_thousand)],
            description="How many of a thousand new tasks stay, at a place that grows; else 0.",
        )
        meter.create_observable_counter(
            "handfast.tasks.created",
            [self._by_place(lambda each: each.created)],
            description="Tasks that were created.",
        )
        meter.create_observable_counter(
            "handfast.tasks.finished",
            [self._by_place(lambda each: each.finished)],
            description="Tasks that ended.",
        )
        meter.create_observable_gauge(
            "handfast.tasks.age",
            [self._ages],
            description="Pending tasks that are younger than le, in seconds.",
        )
        self._create_for_process(meter)

    def _create_for_process(self, meter: Meter) -> None:
        meter.create_observable_gauge(
            "handfast.tasks.kept",
            [self._one(lambda reading: reading.kept)],
            description="Finished tasks that a container keeps.",
        )
        meter.create_observable_gauge(
            "handfast.tasks.never_wake",
            [self._one(lambda reading: reading.never_wakes)],
            description="Tasks that nothing can wake.",
        )
        meter.create_observable_gauge(
            "handfast.loop.lag", [self._lag], unit="s", description="How late the slowest loop is."
        )
        meter.create_observable_gauge(
            "handfast.loop.blocked",
            [self._one(lambda reading: reading.blocked_for)],
            unit="s",
            description="For how long a callback has held up a loop; the longest.",
        )

    def _by_place(self, value: Callable[[PlaceMetrics], float]) -> _Observe:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            for place, series in self._reader.reading().places.items():
                yield Observation(value(series), {"place": place})

        return observe

    def _one(self, value: Callable[[Reading], float]) -> _Observe:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            yield Observation(value(self._reader.reading()))

        return observe

    def _ages(self, _: CallbackOptions) -> Iterator[Observation]:
        for place, series in self._reader.reading().places.items():
            for bound, count in zip(BOUNDS, series.ages, strict=True):
                yield Observation(count, {"place": place, "le": bound})

    def _lag(self, _: CallbackOptions) -> Iterator[Observation]:
        for quantile, seconds in self._reader.reading().lag.items():
            yield Observation(seconds, {"quantile": quantile})
