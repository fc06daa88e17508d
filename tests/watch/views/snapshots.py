"""Snapshots for the tests of the views."""

from __future__ import annotations

from typing import Any

from handfast.watch import (
    CreationPlace,
    Growth,
    KeptTasks,
    LiveScope,
    LiveTask,
    LoopState,
    NeverWakes,
    SlowCallback,
    Snapshot,
    WatchedProcess,
)

__all__ = ["BOT", "HOSTILE", "loop", "place", "process", "snapshot", "task"]

HOSTILE = "\x1b[2Jevil\r\n<script>alert(1)</script>\u202e{{title}}[bold]&\x00" + "x" * 10_240


def process(
    pid: int = 4711, program: str = "bot.py", watched_for: float = 21_600.0
) -> WatchedProcess:
    return WatchedProcess(pid, program, "3.13.0", "0.2.0", watched_for)


def loop(tasks: int, number: int = 1, **more: Any) -> LoopState:
    return LoopState(number, "uvloop.Loop", "MainThread", True, tasks, 0.4, 12.0, 90.0, **more)


def place(number: int, alive: int, **more: Any) -> CreationPlace:
    given: dict[str, Any] = {
        "file": "app/bot.py",
        "line": 10 + number,
        "function": "poll",
        "coroutine": "Bot.fetch",
        "created": 1000 * number,
        "oldest": 7.5,
    }
    return CreationPlace(number, alive=alive, **(given | more))


def task(number: int, **more: Any) -> LiveTask:
    given: dict[str, Any] = {"name": f"Task-{number}", "coroutine": "work", "loop": 1, "age": 5.0}
    return LiveTask(number, **(given | more))


def snapshot(**more: Any) -> Snapshot:
    given: dict[str, Any] = {"process": process(), "taken_at": 1.7e9}
    return Snapshot(**(given | more))


BOT = snapshot(
    loops=(loop(1204, slow=(SlowCallback("app/bot.py:3 in f", 2, 90.0),)),),
    places=(
        place(
            1,
            812,
            line=88,
            growth=Growth(3.1, 3),
            oldest=22_320.0,
            ages=(0,) * 12 + (800, 12) + (0,) * 10,
            waiting_at="Queue.get ← app/bot.py:41 in fetch",
        ),
        place(2, 300, file="app/api.py", line=20, function="request"),
        place(3, 7, file="app/sync.py", line=9, function="drain"),
    ),
    tasks=(
        task(1, name="main", coroutine="main", awaits=(2,), waiting_at=("app/bot.py:5 in main",)),
        task(
            2, name="child", place=1, waiting_at=("app/bot.py:41 in fetch",), waits_for="Queue.get"
        ),
        task(3, place=2, scope=1),
        *(task(each, place=1, waiting_at=("app/bot.py:41 in fetch",)) for each in range(4, 9)),
    ),
    tasks_left_out=1196,
    scopes=(
        LiveScope(1, "requests", "app/bot.py:10 in main", "open", 1),
        LiveScope(2, "inner", "app/bot.py:11 in main", "closing", 0, parent=1),
    ),
    kept=(KeptTasks("attribute _log of bot.Hub", 1033, 2),),
    never_wakes=(NeverWakes(7, "app/sync.py:9 in drain", "Queue.get", 10_860.0, 3),),
    not_checked=("timers of a uvloop loop cannot be seen",),
)
