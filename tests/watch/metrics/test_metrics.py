"""Metrics by place of creation, read with the real libraries."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from handfast import watch
from handfast._watch.metrics import opentelemetry, prometheus
from handfast._watch.metrics.place_series import BOUNDS, MOST_PLACES, OTHER, PlaceReader
from handfast.watch import (
    CreationPlace,
    Growth,
    KeptTasks,
    LoopState,
    NeverWakes,
    Snapshot,
    WatchedProcess,
)

PROCESS = WatchedProcess(1, "app.py", "3.13.0", "0.2.0", 60.0)
LOOP = LoopState(1, "Loop", "MainThread", True, 5, 1.0, 20.0, 300.0, 2.5)


def place(number: int, alive: int, created: int, **more: Any) -> CreationPlace:
    return CreationPlace(number, "app.py", number, "f", "g", alive, created, **more)


def snapshot(*places: CreationPlace, **more: Any) -> Snapshot:
    return Snapshot(PROCESS, 0.0, (LOOP,), places, **more)


class Process:
    """A process whose snapshots a test gives, and a clock that goes on at each reading."""

    def __init__(self, now: Snapshot) -> None:
        self.now = now
        self.read = 0
        self.time = 0.0

    def summary(self) -> Snapshot:
        self.read += 1
        return self.now

    def reader(self) -> PlaceReader:
        return PlaceReader(self.summary, lambda: self.time)

    def later(self, now: Snapshot) -> None:
        self.now = now
        self.time += 10


def scraped(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    """What a server reads: the exposition format, parsed."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exposed(reader: PlaceReader) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(prometheus._Collector(reader))
    return registry


def observed(reader: PlaceReader) -> dict[tuple[str, ...], float]:
    """What an exporter gets."""
    memory = InMemoryMetricReader()
    provider = MeterProvider([memory], shutdown_on_exit=False)
    opentelemetry._Instruments(reader).create(provider.get_meter("test"))
    data = memory.get_metrics_data()
    assert data is not None
    found = {
        (
            metric.name,
            *(str(value) for _, value in sorted((point.attributes or {}).items())),
        ): point.value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if hasattr(point, "value")
    }
    provider.shutdown()
    return found


FULL = snapshot(
    place(1, 3, 10, ages=(0, 0, 1, *[0] * 5, 1, *[0] * 14, 1), growth=Growth(3.5, 4)),
    place(2, 0, 7),
    kept=(KeptTasks("a list", 4),),
    never_wakes=(NeverWakes(2, "app.py:3 in f", "Future"),),
)


def test_prometheus_shows_what_the_snapshot_says() -> None:
    found = scraped(exposed(Process(FULL).reader()))
    first = "app.py:1 in f"
    assert found["handfast_tasks_alive", first] == 3
    assert found["handfast_tasks_created_total", first] == 10
    assert found["handfast_tasks_finished_total", first] == 7
    assert found["handfast_tasks_growth", first] == 3.5
    assert found["handfast_tasks_growth", "app.py:2 in f"] == 0
    ages = [found["handfast_task_age_seconds_bucket", each, first] for each in BOUNDS]
    assert ages == [1, 2, *[2] * 7, 3]
    assert BOUNDS[:2] == ("1", "4")
    assert found[("handfast_tasks",)] == 5
    assert found[("handfast_tasks_kept",)] == 4
    assert found[("handfast_tasks_never_wake",)] == 2
    assert found["handfast_loop_lag_seconds", "0.99"] == 0.02
    assert found[("handfast_loop_blocked_seconds",)] == 2.5


def test_opentelemetry_shows_the_same() -> None:
    found = observed(Process(FULL).reader())
    first = "app.py:1 in f"
    assert found["handfast.tasks.alive", first] == 3
    assert found["handfast.tasks.created", first] == 10
    assert found["handfast.tasks.finished", "app.py:2 in f"] == 7
    assert found["handfast.tasks.growth", first] == 3.5
    assert found["handfast.tasks.age", "+Inf", first] == 3
    assert found[("handfast.tasks.kept",)] == 4
    assert found[("handfast.tasks.never_wake",)] == 2
    assert found["handfast.loop.lag", "1"] == 0.3
    assert found[("handfast.loop.blocked",)] == 2.5


def test_ten_thousand_places_have_fifty_one_series_of_each_kind() -> None:
    many = snapshot(*(place(each, each, 2 * each) for each in range(1, 10_001)))
    reader = Process(many).reader()
    names = [name for name, *labels in scraped(exposed(reader)) if name == "handfast_tasks_alive"]
    assert len(names) == MOST_PLACES + 1
    found = observed(reader)
    alive = {name[1]: value for name, value in found.items() if name[0] == "handfast.tasks.alive"}
    assert len(alive) == MOST_PLACES + 1
    assert alive["app.py:10000 in f"] == 10_000
    assert sum(alive.values()) == sum(range(1, 10_001))
    assert len(found) < 1000


def test_a_place_that_grows_has_its_series_however_few_tasks_it_has() -> None:
    crowd = [place(each, 100, 100) for each in range(1, 80)]
    few = place(99, 1, 1, growth=Growth(1.0, 3))
    series = Process(snapshot(*crowd, few)).reader().reading().places
    assert series["app.py:99 in f"].alive == 1


def test_a_counter_never_goes_down_when_places_change_their_series() -> None:
    def crowd(first: int) -> Snapshot:
        """100 places, each with 10 more tasks at each step; 50 of them from `first` on are large."""
        return snapshot(
            *(
                place(each, 500 if first <= each < first + 50 else 1, 1000 + first * 10)
                for each in range(100)
            )
        )

    process = Process(crowd(0))
    reader = process.reader()
    before: dict[str, int] = {}
    total = 0
    for step in range(0, 50, 5):
        process.later(crowd(step))
        places = reader.reading().places
        for label, series in places.items():
            assert series.created >= before.get(label, 0), label
            before[label] = series.created
        total = sum(before.values())
    assert total == sum(each.created for each in process.now.places)


def test_places_with_one_label_are_one_series() -> None:
    same = [CreationPlace(each, "app.py", 7, "f", "g", 2, 5) for each in (1, 2)]
    series = Process(snapshot(*same)).reader().reading().places
    assert series["app.py:7 in f"].alive == 4
    assert series["app.py:7 in f"].created == 10


def test_one_scrape_reads_the_process_once() -> None:
    process = Process(FULL)
    reader = process.reader()
    observed(reader)
    assert process.read == 1
    process.later(replace(FULL, places=()))
    assert list(reader.reading().places) == [OTHER]


def test_the_public_collector_counts_the_tasks_of_this_process() -> None:
    registry = CollectorRegistry()
    registry.register(watch.prometheus_collector())

    async def main() -> dict[tuple[str, ...], float]:
        tasks = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(3)]
        await asyncio.sleep(0)
        found = await asyncio.to_thread(scraped, registry)
        for task in tasks:
            task.cancel()
        return found

    with watch.serve("metrics"):
        found = asyncio.run(main())
    alive = {name[1]: count for name, count in found.items() if name[0] == "handfast_tasks_alive"}
    place = next(each for each in alive if "test_metrics.py" in each and alive[each] == 3)
    assert found["handfast_tasks_created_total", place] == 3
    assert found[("handfast_tasks",)] >= 4


def test_the_public_instruments_report_to_a_meter() -> None:
    memory = InMemoryMetricReader()
    provider = MeterProvider([memory], shutdown_on_exit=False)
    watch.opentelemetry_instruments(provider.get_meter("test"))
    data = memory.get_metrics_data()
    assert data is not None
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    assert {"handfast.tasks.alive", "handfast.loop.lag"} <= {each.name for each in metrics}
    provider.shutdown()


@pytest.mark.parametrize("library", ["prometheus", "opentelemetry"])
def test_a_missing_library_is_named_with_its_extra(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib
    import sys

    package = {"prometheus": "prometheus_client.core", "opentelemetry": "opentelemetry.metrics"}
    module = {"prometheus": prometheus, "opentelemetry": opentelemetry}[library]
    monkeypatch.setitem(sys.modules, package[library], None)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ModuleNotFoundError, match=r"handfast\[metrics\]"):
        importlib.import_module(module.__name__)
