"""Makes a snapshot of this process.

A first pass over the pending tasks counts them by loop and by place, and finds how old the oldest are.
If tasks are wanted, a second pass describes those. Neither makes a container for each task: a hundred
thousand new ones would start a full garbage collection, half a second in such a program.
"""

from __future__ import annotations

import heapq
import os
import sys
import time
from asyncio import AbstractEventLoop, Task
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from handfast._asyncio_internals import untested_python
from handfast._runtime.hosting.owner_task import owner_behind
from handfast._watch import growth
from handfast._watch.agent.findings import Findings
from handfast._watch.agent.pacing import no_pause
from handfast._watch.connection.encode import parts_of, text_of
from handfast._watch.recording import task_creation
from handfast._watch.recording.ages import bucket_of
from handfast._watch.recording.event_loops import Pause, kind_of, known_loops, live_tasks
from handfast._watch.recording.places import Place, all_places
from handfast._watch.recording.scopes import Scopes
from handfast._watch.recording.shown_text import LineTexts, clean
from handfast._watch.recording.waiting import awaited_tasks, name_of_coroutine, waiting_at
from handfast._watch.snapshot import (
    AGE_BUCKETS,
    CreationPlace,
    LiveTask,
    LoopState,
    Snapshot,
    WatchedProcess,
)

T = TypeVar("T")

_BEFORE = 0.0
"""Tasks from before the watch are older than all others."""

_SORTED_AT_ONCE = 4096

_SAMPLES = 5
"""Of so many tasks of a place it is looked up what they run and where they wait."""

_SAMPLED_PLACES = 200
"""And of so many places, those with most tasks."""


@dataclass(slots=True)
class LiveTasksOfPlace:
    """The live tasks of one place."""

    alive: int = 0
    first: float = float("inf")
    ages: list[int] = field(default_factory=lambda: [0] * AGE_BUCKETS)
    samples: list[Task[Any]] = field(default_factory=list)


@dataclass(slots=True)
class TaskCount:
    """All live tasks, counted; and the oldest of them, at most as many as requested."""

    by_loop: Counter[int] = field(default_factory=Counter)
    by_place: dict[Place, LiveTasksOfPlace] = field(default_factory=dict)
    oldest: list[float] = field(default_factory=list)
    """Negated times of creation of the oldest tasks: a heap, the youngest of them first."""
    alive: int = 0
    without_place: int = 0


def count_tasks(wanted: int, pause: Pause, scopes: Scopes) -> TaskCount:
    """Count the pending tasks, and keep the `wanted` oldest."""
    count = TaskCount()
    now = time.monotonic()
    for task in pending_tasks(pause):
        count.alive += 1
        count.by_loop[id(task.get_loop())] += 1
        created = task_creation.created_at(task)
        place = task_creation.place_of(task)
        if place is None:
            count.without_place += 1
        else:
            _count_at_place(count.by_place, place, task, created or now, now)
        if wanted:
            scopes.note(task)
            entry = -(created or _BEFORE)
            if len(count.oldest) < wanted:
                heapq.heappush(count.oldest, entry)
            elif entry > count.oldest[0]:
                heapq.heapreplace(count.oldest, entry)
    return count


def pending_tasks(pause: Pause) -> Iterator[Task[Any]]:
    """The pending tasks, with the owner of a held resource in place of its stand-in."""
    for listed in live_tasks(known_loops(), pause):
        try:
            # A stand-in is made without the hook, as are few others.
            task = owner_behind(listed) if task_creation.place_of(listed) is None else listed
            pending = not task.done()
        except Exception:  # a class of the program's may raise anything: such a task is left out
            continue
        if pending:
            yield task


def _count_at_place(
    by_place: dict[Place, LiveTasksOfPlace],
    place: Place,
    task: Task[Any],
    created: float,
    now: float,
) -> None:
    counted = by_place.get(place)
    if counted is None:
        counted = by_place[place] = LiveTasksOfPlace()
    counted.alive += 1
    counted.ages[bucket_of(now - created)] += 1
    counted.first = min(counted.first, created)
    if len(counted.samples) < _SAMPLES:
        counted.samples.append(task)


# --- the parts of a snapshot ---------------------------------------------------------------------


def take_snapshot(
    process: WatchedProcess,
    tasks: int = 0,
    pause: Pause = no_pause,
    states: dict[int, LoopState] | None = None,
    findings: Findings | None = None,
) -> Snapshot:
    """A snapshot of this process; `states` is what is known of the loops' lag, by id."""
    lines = LineTexts()
    scopes = Scopes()
    snapshot, count = _summary(
        process, tasks, pause, states or {}, lines, scopes, findings or Findings()
    )
    if not tasks:
        return snapshot
    listed = _listed(count, tasks, lines, pause, scopes, lambda task: task)
    return replace(snapshot, tasks=tuple(listed), tasks_left_out=count.alive - len(listed))


def encoded_snapshot(
    process: WatchedProcess,
    tasks: int,
    pause: Pause,
    states: dict[int, LoopState],
    findings: Findings,
) -> Iterator[str]:
    """The same as JSON in parts; there is never a record for each task."""
    lines = LineTexts()
    scopes = Scopes()
    snapshot, count = _summary(process, tasks, pause, states, lines, scopes, findings)
    listed = _listed(count, tasks, lines, pause, scopes, text_of)
    return parts_of(replace(snapshot, tasks_left_out=count.alive - len(listed)), listed)


def _summary(
    process: WatchedProcess,
    tasks: int,
    pause: Pause,
    states: dict[int, LoopState],
    lines: LineTexts,
    scopes: Scopes,
    findings: Findings,
) -> tuple[Snapshot, TaskCount]:
    taken_at = time.time()
    count = count_tasks(tasks, pause, scopes)
    snapshot = Snapshot(
        process,
        taken_at,
        loops=tuple(_loop_state(loop, count, states) for loop in known_loops()),
        places=_places(count, lines, pause, findings),
        tasks_left_out=count.alive,
        scopes=scopes.shown(lines),
        kept=findings.kept,
        never_wakes=findings.never_wakes,
        not_checked=(*_not_checked(count), *findings.not_checked),
    )
    return snapshot, count


def _loop_state(
    loop: AbstractEventLoop, count: TaskCount, states: dict[int, LoopState]
) -> LoopState:
    state = states.get(id(loop))
    tasks = count.by_loop[id(loop)]
    if state is not None:
        return replace(state, tasks=tasks, running=loop.is_running())
    return LoopState(id(loop), kind_of(loop), "", loop.is_running(), tasks)


def counts_by_place(pause: Pause) -> Iterator[growth.PlaceCount]:
    """The counts that show which places grow."""
    count = count_tasks(0, pause, Scopes())
    for place in all_places():
        counted = count.by_place.get(place) or LiveTasksOfPlace()
        created = max(place.created, counted.alive)
        yield growth.PlaceCount(place.id, created, counted.alive, counted.ages)


def _places(
    count: TaskCount, lines: LineTexts, pause: Pause, findings: Findings
) -> tuple[CreationPlace, ...]:
    now = time.monotonic()
    largest = heapq.nlargest(
        _SAMPLED_PLACES, count.by_place, key=lambda place: count.by_place[place].alive
    )
    described = {}
    for place in largest:
        pause()
        described[place] = _describe(count.by_place[place].samples, lines)
        count.by_place[place].samples.clear()
    shown = []
    for place in all_places():
        pause()
        counted = count.by_place.get(place) or LiveTasksOfPlace()
        coroutine, waiting = described.get(place, ("", ""))
        shown.append(
            CreationPlace(
                place.id,
                place.file,
                place.line,
                place.function,
                coroutine,
                counted.alive,
                max(place.created, counted.alive),
                max(0.0, now - counted.first) if counted.alive else None,
                tuple(counted.ages),
                waiting,
                findings.growth_of(place.id),
            )
        )
    return tuple(shown)


def _describe(samples: list[Task[Any]], lines: LineTexts) -> tuple[str, str]:
    """What most of these tasks run, and where most of them wait."""
    names: Counter[str] = Counter()
    places: Counter[str] = Counter()
    for task in samples:
        names[name_of_coroutine(task)] += 1
        stack, words = waiting_at(task, lines)
        if stack:
            places[f"{words} ← {stack[-1]}" if words else stack[-1]] += 1
    return _most(names), _most(places)


def _most(counted: Counter[str]) -> str:
    return counted.most_common(1)[0][0] if counted else ""


def _listed(
    count: TaskCount,
    wanted: int,
    lines: LineTexts,
    pause: Pause,
    scopes: Scopes,
    shown_as: Callable[[LiveTask], T],
) -> list[T]:
    """The oldest tasks, as `shown_as` makes them, the oldest first."""
    if not count.oldest:
        return []
    now = time.monotonic()
    # That of the youngest that is shown. Those that were created since are younger.
    latest = -count.oldest[0]
    times: list[float] = []
    shown: list[T] = []
    for task in pending_tasks(pause):
        created = task_creation.created_at(task)
        if (created or _BEFORE) <= latest and len(shown) < wanted:
            with suppress(Exception):  # a class of the program's: it is counted as left out
                shown.append(shown_as(_live_task(task, created, now, lines, scopes)))
                times.append(created or _BEFORE)
    return [shown[index] for index in _in_order(times, pause)]


def _in_order(times: list[float], pause: Pause) -> Iterator[int]:
    """The indices in the order of `times`. One sort of very many would hold up all threads."""
    parts = [
        sorted(range(first, min(first + _SORTED_AT_ONCE, len(times))), key=times.__getitem__)
        for first in range(0, len(times), _SORTED_AT_ONCE)
    ]
    for index in heapq.merge(*parts, key=times.__getitem__):
        pause()
        yield index


def _live_task(
    task: Task[Any], created: float | None, now: float, lines: LineTexts, scopes: Scopes
) -> LiveTask:
    place = task_creation.place_of(task)
    stack, words = waiting_at(task, lines)
    return LiveTask(
        id(task),
        clean(task.get_name()),
        name_of_coroutine(task),
        id(task.get_loop()),
        None if place is None else place.id,
        None if created is None else max(0.0, now - created),
        stack,
        words,
        awaited_tasks(task),
        scopes.note(task),
    )


def _not_checked(count: TaskCount) -> Iterable[str]:
    if not task_creation.is_on():
        yield "The watch is off in this process: no task has a place of creation."
    elif count.without_place:
        yield (
            f"Tasks without a place of creation: {count.without_place:,}. They were created before "
            "the watch began, or without create_task()."
        )
    untested = untested_python()
    if untested is not None:
        yield untested
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        yield "This Python runs without the GIL: counters of places may miss a few tasks."


def this_process(name: str = "", watched_for: float = 0.0) -> WatchedProcess:
    """What is known of this process."""
    import handfast

    return WatchedProcess(
        os.getpid(),
        clean(name or program_name()),
        sys.version.split()[0],
        handfast.__version__,
        watched_for,
    )


def program_name() -> str:
    """The name of the script or module, without its arguments."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    path = getattr(main, "__file__", None) or (sys.argv[0] if sys.argv else "")
    return os.path.basename(path) or "python"
