"""The tree of a snapshot as rows: loops, their scopes, tasks, and the tasks that those await.

A task is shown once in full: under its scope if it has one, or else under the first task that awaits
it, or else under its loop. Elsewhere it is only named. Tasks that await each other in a ring have no
such place; they come last, as what they are. Equal tasks without children are one row with a number.

Chains may have any length, so nothing here calls itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from handfast._watch.snapshot import LiveScope, LiveTask, Snapshot
from handfast._watch.views.cells import age, count_of, place_names, printable, short_line

# It was created before the watch began, or without `create_task`.
UNKNOWN = "place not known"
Kind = Literal["loop", "scope", "task", "tasks", "named", "ring", "note"]


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of the tree."""

    depth: int
    kind: Kind
    text: str
    detail: str = ""


def tree_rows(snapshot: Snapshot) -> Iterator[TreeRow]:
    """Return the rows in the order in which they are read."""
    yield from _Tree(snapshot).rows()


@dataclass(slots=True)
class _Tree:
    snapshot: Snapshot
    names: dict[int, str] = field(init=False)
    tasks: dict[int, LiveTask] = field(init=False)
    scopes: dict[int, LiveScope] = field(init=False)
    awaited: set[int] = field(init=False)
    shown: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.names = place_names(self.snapshot.places)
        self.tasks = {each.id: each for each in self.snapshot.tasks}
        self.scopes = {each.id: each for each in self.snapshot.scopes}
        self.awaited = {
            child for each in self.tasks.values() for child in each.awaits if child != each.id
        }

    def rows(self) -> Iterator[TreeRow]:
        roots = defaultdict(list)
        for task in self.tasks.values():
            if not self._in_scope(task) and task.id not in self.awaited:
                roots[task.loop].append(task)
        for loop in self.snapshot.loops:
            held = f", {printable(loop.thread)}" if loop.thread else ""
            text = f"{printable(loop.kind)}{held}: {count_of(loop.tasks, 'task')}"
            yield TreeRow(0, "loop", text)
            yield from self._under(1, roots.pop(loop.id, []))
        for others in roots.values():
            yield from self._under(0, others)
        yield from self._all_scopes()
        yield from self._rings()
        if self.snapshot.tasks_left_out:
            left = count_of(self.snapshot.tasks_left_out, "younger task")
            yield TreeRow(0, "note", f"{left} not listed")

    def _in_scope(self, task: LiveTask) -> bool:
        return task.scope is not None and task.scope in self.scopes

    # --- scopes --------------------------------------------------------------------------

    def _all_scopes(self) -> Iterator[TreeRow]:
        members: defaultdict[int, list[LiveTask]] = defaultdict(list)
        for task in self.tasks.values():
            if self._in_scope(task):
                members[task.scope or 0].append(task)
        inner: defaultdict[int | None, list[LiveScope]] = defaultdict(list)
        for scope in self.scopes.values():
            inner[scope.parent if scope.parent in self.scopes else None].append(scope)
        seen: set[int] = set()
        stack = [(0, each) for each in reversed(inner[None])]
        # A scope that holds itself, over others, has no outermost one: begin anywhere.
        waiting = list(self.scopes.values())
        while stack or waiting:
            if not stack:
                stack.append((0, waiting.pop()))
            depth, scope = stack.pop()
            if scope.id in seen:
                continue
            seen.add(scope.id)
            yield self._scope_row(depth, scope)
            yield from self._under(depth + 1, members[scope.id])
            stack += [(depth + 1, each) for each in reversed(inner[scope.id])]

    def _scope_row(self, depth: int, scope: LiveScope) -> TreeRow:
        name = printable(scope.name)
        text = f"scope {name!r}: {printable(scope.state)}, {count_of(scope.tasks, 'task')}"
        return TreeRow(depth, "scope", text, f"created at {printable(scope.created_at)}")

    # --- tasks ---------------------------------------------------------------------------

    def _under(self, depth: int, tasks: list[LiveTask]) -> Iterator[TreeRow]:
        """The rows of these tasks, and of those that they await."""
        stack = list(reversed(self._grouped(depth, tasks)))
        path: dict[int, int] = {}  # the tasks above the row, by depth
        depths: dict[int, int] = {}
        while stack:
            depth, item = stack.pop()
            if isinstance(item, TreeRow):
                yield item
            elif item.id in self.shown:
                above = depths.get(item.id, depth)
                ring = above < depth and path[above] == item.id
                why = "above: these await each other, for ever" if ring else "shown elsewhere"
                yield self._named(depth, item, why)
            else:
                self.shown.add(item.id)
                path[depth] = item.id
                depths[item.id] = depth
                yield self._task_row(depth, item)
                stack += reversed(self._children(depth + 1, item))

    def _children(self, depth: int, task: LiveTask) -> list[tuple[int, LiveTask | TreeRow]]:
        listed = [self.tasks[each] for each in task.awaits if each in self.tasks]
        own = [each for each in listed if not self._in_scope(each)]
        named = [each for each in listed if self._in_scope(each)]
        items = self._grouped(depth, own)
        items += [(depth, self._named(depth, each, "shown in its scope")) for each in named]
        return items

    def _grouped(self, depth: int, tasks: list[LiveTask]) -> list[tuple[int, LiveTask | TreeRow]]:
        """The tasks, where equal ones without children are one row."""
        alone = [each for each in tasks if not each.awaits and each.id not in self.shown]
        counts = Counter(map(_likeness, alone))
        items: list[tuple[int, LiveTask | TreeRow]] = []
        for task in tasks:
            number = 0 if task.awaits or task.id in self.shown else counts[_likeness(task)]
            if number == 1 or task.awaits or task.id in self.shown:
                items.append((depth, task))
                continue
            self.shown.add(task.id)
            if number > 1:  # the first of them, which is the oldest
                counts[_likeness(task)] = -1
                items.append((depth, self._group_row(depth, task, number)))
        return items

    def _group_row(self, depth: int, task: LiveTask, number: int) -> TreeRow:
        text = f"{number:,} × {printable(task.coroutine)}, the oldest {age(task.age)}"
        return TreeRow(depth, "tasks", text, self._detail(task))

    def _task_row(self, depth: int, task: LiveTask) -> TreeRow:
        text = f"{printable(task.name, 80)} {printable(task.coroutine)}"
        if task.age is not None:
            text += f" {age(task.age)}"
        return TreeRow(depth, "task", text, self._detail(task))

    def _detail(self, task: LiveTask) -> str:
        place = self.names.get(task.place, "") if task.place is not None else ""
        created = f"created at {place}" if place else UNKNOWN
        return f"{where(task)}; {created}"

    def _named(self, depth: int, task: LiveTask, why: str) -> TreeRow:
        name = f"{printable(task.name, 80)} {printable(task.coroutine)}"
        return TreeRow(depth, "named", f"{name} ({why})")

    # --- rings ---------------------------------------------------------------------------

    def _rings(self) -> Iterator[TreeRow]:
        for task in self.tasks.values():
            if task.id not in self.shown and not self._in_scope(task):
                ring = self._ring_from(task)
                names = " → ".join(printable(each.name, 40) for each in [*ring[:5], ring[0]])
                more = f" (of {len(ring):,})" if len(ring) > 5 else ""
                yield TreeRow(0, "ring", f"tasks that await each other: {names}{more}")
                yield from self._under(1, [ring[0]])

    def _ring_from(self, task: LiveTask) -> list[LiveTask]:
        """A ring of awaits that this task belongs to or leads to."""
        path: list[LiveTask] = []
        position: dict[int, int] = {}
        while task.id not in position:
            position[task.id] = len(path)
            path.append(task)
            onward = [self.tasks[each] for each in task.awaits if each in self.tasks]
            waiting = [each for each in onward if each.id not in self.shown]
            if not waiting:
                return path[-1:]
            task = waiting[0]
        return path[position[task.id] :]


def where(task: LiveTask) -> str:
    """Return where a task waits, and for what."""
    if not task.waiting_at:
        return "runs, or is about to"
    line = short_line(task.waiting_at[-1])
    return f"{printable(task.waits_for)} ← {line}" if task.waits_for else line


def _likeness(task: LiveTask) -> tuple[object, ...]:
    return (task.place, task.coroutine, task.waiting_at, task.waits_for)
