"""`find_kept`: finished tasks that a container still refers to, and which container.

It walks the heap in steps. A step holds the GIL, and so each loop; between two steps other threads
run. In a heap of 1.2 million objects all of it takes 0.14 s of CPU time, and on a loaded machine a
loop stood still for up to 0.3 s (`python -m benchmarks.watch_analysis`). So it is not done again
before a hundred times its own CPU time has passed.
"""

from __future__ import annotations

import gc
import time
import weakref
from asyncio import Task
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, ClassVar

from handfast._census.task_containers import done_tasks_in, names_of
from handfast._watch.snapshot import KeptTasks

PlaceOf = Callable[[Task[Any]], "int | None"]
"""The place that created a task, if it is known."""

FEW = 2
# Subclasses may run any code when they are iterated.
_KINDS = {list, dict, set, deque, defaultdict, OrderedDict}
# A container that grows has most of the finished tasks, so a few of these lead to it.
_SAMPLED = 24
_MOST = 50
_NAMED = 1000
# Of the time, how much the search may take.
_SHARE = 0.01


class _Last:
    """The last result, and when to look again."""

    kept: tuple[KeptTasks, ...] = ()
    until = 0.0
    # By id of a container: some of the finished tasks that were in it.
    seen: ClassVar[dict[int, list[weakref.ref[Task[Any]]]]] = {}


def find_kept(place_of: PlaceOf) -> tuple[KeptTasks, ...]:
    """The containers with two finished tasks or more, the largest first.

    They must have been there at the last search already: `task.add_done_callback(tasks.discard)` takes
    a task out of its set a moment after it has finished, and a busy loop has many at such a moment.

    Call it from a thread of its own. The last result is returned as long as a new one would take
    more than one percent of the time.
    """
    begin = time.monotonic()
    if begin < _Last.until:
        return _Last.kept
    used = time.thread_time()
    try:
        _Last.kept = _search(place_of)
    finally:
        _Last.until = begin + (time.thread_time() - used) / _SHARE
    return _Last.kept


def _search(place_of: PlaceOf) -> tuple[KeptTasks, ...]:
    sample = _sample(place_of)
    containers = [
        each
        for each in (gc.get_referrers(*sample) if sample else ())
        if type(each) in _KINDS and each is not sample and len(done_tasks_in(each)) >= FEW
    ]
    del sample
    names = names_of(containers)
    done = {id(each): done_tasks_in(each) for each in containers if id(each) in names}
    found = [
        _kept(names[number], tasks, place_of)
        for number, tasks in done.items()
        if _were_there(tasks, _Last.seen.get(number, ()))
    ]
    _Last.seen = {
        number: [weakref.ref(each) for each in _spread(tasks, _SAMPLED)]
        for number, tasks in done.items()
    }
    return tuple(sorted(found, key=lambda each: -each.count)[:_MOST])


def _were_there(tasks: list[Task[Any]], seen: Iterable[weakref.ref[Task[Any]]]) -> bool:
    now = set(map(id, tasks))
    return sum(id(reference()) in now for reference in seen) >= FEW


def _kept(name: str, done: list[Task[Any]], place_of: PlaceOf) -> KeptTasks:
    places = Counter(map(place_of, islice(done, _NAMED)))
    (place, _), *_ = places.most_common(1) or [(None, 0)]
    return KeptTasks(name, len(done), place)


def _sample(place_of: PlaceOf) -> list[Task[Any]]:
    """Some finished tasks, of as many places as possible."""
    by_place: dict[int | None, list[Task[Any]]] = {}
    for task in _done_tasks():
        by_place.setdefault(place_of(task), []).append(task)
    largest = sorted(by_place.values(), key=len, reverse=True)[:_SAMPLED]
    each = max(1, _SAMPLED // max(1, len(largest)))
    return [task for tasks in largest for task in _spread(tasks, each)]


def _spread(tasks: list[Task[Any]], count: int) -> Iterable[Task[Any]]:
    return islice(tasks, 0, None, max(1, len(tasks) // count))


def _done_tasks() -> list[Task[Any]]:
    """The finished tasks. Since 3.14 asyncio no longer lists them, so all objects are read."""
    kinds: dict[type, bool] = {}
    found = []
    # A generation at a time, since the list of a whole heap would hold up the loop for longer.
    for generation in range(3):
        for thing in gc.get_objects(generation):
            kind = type(thing)
            is_task = kinds.get(kind)
            if is_task is None:
                is_task = kinds[kind] = issubclass(kind, Task)
            if is_task and thing.done():
                found.append(thing)
    return found
