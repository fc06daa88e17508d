"""The snapshot: what is written is read back, and what is no snapshot is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handfast._watch.snapshot import (
    AGE_BUCKETS,
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

FULL = Snapshot(
    process=WatchedProcess(4711, "bot.py", "3.13.0", "0.2.0", 21600.0),
    taken_at=1.7e9,
    loops=(
        LoopState(
            1,
            "uvloop.Loop",
            "MainThread",
            True,
            2,
            0.4,
            12.0,
            90.0,
            0.0,
            (),
            (SlowCallback("bot.py:3 in f", 2, 90.0),),
        ),
    ),
    places=(
        CreationPlace(
            1,
            "bot.py",
            88,
            "poll",
            "Bot.fetch",
            2,
            10,
            7.5,
            (0,) * AGE_BUCKETS,
            "bot.py:41 in fetch",
            Growth(3.1, 3),
        ),
    ),
    tasks=(
        LiveTask(
            1, "Task-1", "Bot.fetch", 1, 1, 7.5, ("bot.py:41 in fetch",), "Queue.get", (2,), 1
        ),
        LiveTask(2, "Task-2", "old", 1),
    ),
    scopes=(LiveScope(1, "bot", "bot.py:10 in main", "open", 1),),
    kept=(KeptTasks("attribute _log of bot.Hub", 1033, 1),),
    never_wakes=(NeverWakes(7, "bot.py:9 in drain", "Queue.get", 10860.0, 1),),
    not_checked=("timers on a uvloop loop cannot be seen",),
)


def test_a_snapshot_is_read_as_it_was_written() -> None:
    assert Snapshot.from_json(FULL.to_json()) == FULL
    assert FULL.alive == 2
    assert FULL.places[0].finished == 8


def test_what_this_version_does_not_know_is_ignored() -> None:
    data = json.loads(FULL.to_json())
    data["new"] = data["loops"][0]["new"] = 1
    assert Snapshot.from_json(json.dumps(data)) == FULL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "made by a newer handfast"),
        ({"version": None}, "no version"),
        ({"process": 3}, "snapshot.process is not an object"),
        ({"process": {"pid": 1}}, "missing 4 required"),
        ({"tasks": {}}, "snapshot.tasks is not a list"),
        ({"not_checked": [1]}, r"not_checked\[\] is not str"),
        ({"taken_at": "now"}, "taken_at is not float"),
        ({"taken_at": 10**400}, "taken_at is too large"),
        ({"tasks_left_out": -(10**4000)}, "tasks_left_out is too large"),
    ],
)
def test_what_is_no_snapshot_is_refused(change: dict[str, Any], message: str) -> None:
    data = json.loads(FULL.to_json()) | change
    with pytest.raises(SnapshotError, match=message):
        Snapshot.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_text_that_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(SnapshotError):
        Snapshot.from_json(text)
