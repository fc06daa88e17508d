"""A collector for prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from handfast._missing_extra import install_line
from handfast._watch.metrics.place_series import BOUNDS, PlaceMetrics, PlaceReader, Reading

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"these metrics need prometheus-client: {install_line('metrics')}", name=error.name
    ) from error


def prometheus_collector() -> Collector:
    """A collector of this process's tasks by place of creation, for a Prometheus registry.

    At most 50 places have series of their own, the others are summed up as `other`.

    >>> from prometheus_client import CollectorRegistry
    >>> from handfast import watch
    >>> registry = CollectorRegistry()
    >>> registry.register(watch.prometheus_collector())
    >>> registry.get_sample_value("handfast_tasks") is None
    False
    """
    return _Collector(PlaceReader())


class _Collector(Collector):
    def __init__(self, reader: PlaceReader) -> None:
        self._reader = reader

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read the process."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics of one reading."""
        reading = self._reader.reading()
        yield from _of_places(reading)
        yield from _of_process(reading)


def _of_places(reading: Reading) -> Iterator[Metric]:
    alive = "Pending tasks, by the line that created them."
    yield _gauge(reading, "handfast_tasks_alive", alive, lambda each: each.alive)
    growing = "How many of a thousand new tasks stay, at a place that grows; else 0."
    yield _gauge(reading, "handfast_tasks_growth", growing, lambda each: each.per_thousand)
    created = CounterMetricFamily(
        "handfast_tasks_created", "Tasks that were created.", labels=["place"]
    )
    finished = CounterMetricFamily("handfast_tasks_finished", "Tasks that ended.", labels=["place"])
    # A gauge with the labels of a histogram's buckets: tasks leave their bucket as they grow older.
    ages = GaugeMetricFamily(
        "handfast_task_age_seconds_bucket",
        "Pending tasks that are younger than le.",
        labels=["place", "le"],
    )
    for place, series in reading.places.items():
        created.add_metric([place], series.created)
        finished.add_metric([place], series.finished)
        for bound, count in zip(BOUNDS, series.ages, strict=True):
            ages.add_metric([place, bound], count)
    yield from (created, finished, ages)


def _gauge(
    reading: Reading, name: str, text: str, value: Callable[[PlaceMetrics], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["place"])
    for place, series in reading.places.items():
        family.add_metric([place], value(series))
    return family


def _of_process(reading: Reading) -> Iterator[Metric]:
    yield GaugeMetricFamily("handfast_tasks", "Pending tasks.", reading.snapshot.alive)
    yield GaugeMetricFamily(
        "handfast_tasks_kept", "Finished tasks that a container keeps.", reading.kept
    )
    yield GaugeMetricFamily(
        "handfast_tasks_never_wake", "Tasks that nothing can wake.", reading.never_wakes
    )
    yield GaugeMetricFamily("handfast_loops", "Event loops.", len(reading.snapshot.loops))
    lag = GaugeMetricFamily(
        "handfast_loop_lag_seconds", "How late the slowest loop is.", labels=["quantile"]
    )
    for quantile, seconds in reading.lag.items():
        lag.add_metric([quantile], seconds)
    yield lag
    yield GaugeMetricFamily(
        "handfast_loop_blocked_seconds",
        "For how long a callback has held up a loop; the longest.",
        reading.blocked_for,
    )
