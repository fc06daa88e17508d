"""See what is alive in a live process: tasks by the line that created them, what grows, what waits
for something that can never happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast._public_names import load_on_use, publish
from handfast._watch.agent.serving import Watch, serve, snapshot
from handfast._watch.connection.client import Client, connect, processes
from handfast._watch.error import WatchError
from handfast._watch.snapshot import (
    CreationPlace,
    Growth,
    KeptTasks,
    LiveScope,
    LiveTask,
    LoopState,
    NeverWakes,
    SlowCallback,
    Snapshot,
    SnapshotError,
    WatchedProcess,
)

if TYPE_CHECKING:
    from handfast._watch.metrics.opentelemetry import opentelemetry_instruments
    from handfast._watch.metrics.prometheus import prometheus_collector

__all__ = [
    "Client",
    "CreationPlace",
    "Growth",
    "KeptTasks",
    "LiveScope",
    "LiveTask",
    "LoopState",
    "NeverWakes",
    "SlowCallback",
    "Snapshot",
    "SnapshotError",
    "Watch",
    "WatchError",
    "WatchedProcess",
    "connect",
    "opentelemetry_instruments",
    "processes",
    "prometheus_collector",
    "serve",
    "snapshot",
]

publish(
    __name__,
    [
        Client,
        CreationPlace,
        Growth,
        KeptTasks,
        LiveScope,
        LiveTask,
        LoopState,
        NeverWakes,
        SlowCallback,
        Snapshot,
        SnapshotError,
        Watch,
        WatchError,
        WatchedProcess,
        connect,
        processes,
        serve,
        snapshot,
    ],
)

# These need the extra "metrics".
__getattr__ = load_on_use(
    __name__,
    {
        "opentelemetry_instruments": "handfast._watch.metrics.opentelemetry",
        "prometheus_collector": "handfast._watch.metrics.prometheus",
    },
)
