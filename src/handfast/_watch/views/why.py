"""Why the tasks of a place do not go on: their await stacks, and on through the tasks they await."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from handfast._watch.snapshot import LiveTask, Snapshot
from handfast._watch.views.cells import age, count_of, place_names, printable
from handfast._watch.views.task_tree import UNKNOWN

_WAYS = 10
"""So many different await stacks are shown; most places have one or two."""

_LONGEST = 50
"""A chain of tasks is followed so far."""


def why(snapshot: Snapshot, place: int | None) -> list[str]:
    """Return the lines that say where the tasks of a place wait; None: those without a place."""
    tasks = [each for each in snapshot.tasks if each.place == place]
    names = place_names(snapshot.places)
    created = f"created at {names[place]}" if place in names else f"with {UNKNOWN}"
    if not tasks:
        left = snapshot.tasks_left_out
        hint = f"; {count_of(left, 'younger task')} not listed" if left else ""
        return [f"no listed task {created}{hint}"]
    counts: Counter[tuple[object, ...]] = Counter(map(_way, tasks))
    lines = [f"{count_of(len(tasks), 'task')} {created}"]
    for way, number in counts.most_common(_WAYS):
        first = next(each for each in tasks if _way(each) == way)
        lines += ["", f"{number:,} of them, the oldest {age(first.age)}:", *_chain(snapshot, first)]
    if len(counts) > _WAYS:
        lines += ["", f"and {count_of(len(counts) - _WAYS, 'other await stack')}"]
    return lines


def _way(task: LiveTask) -> tuple[object, ...]:
    return (task.coroutine, task.waiting_at, task.waits_for)


def _chain(snapshot: Snapshot, task: LiveTask) -> Iterator[str]:
    """The stack of a task, and that of the first task which it awaits, and so on."""
    by_id = {each.id: each for each in snapshot.tasks}
    seen: set[int] = set()
    while True:
        yield f"  {printable(task.name, 80)} {printable(task.coroutine)}"
        for line in task.waiting_at:
            yield f"    {printable(line)}"
        if not task.waiting_at:
            yield "    runs, or is about to"
        seen.add(task.id)
        onward = [by_id[each] for each in task.awaits if each in by_id]
        if not onward:
            if task.waits_for:
                yield f"    waits for {printable(task.waits_for)}"
            return
        more = f", the first of {len(onward)} tasks" if len(onward) > 1 else ""
        if onward[0].id in seen:
            yield f"    awaits {printable(onward[0].name, 80)} again: these await each other"
            return
        if len(seen) == _LONGEST:
            yield "    and so on"
            return
        yield f"  awaits{more}"
        task = onward[0]
