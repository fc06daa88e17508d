"""The scopes of the runtime that have live tasks, and which of them holds which."""

from __future__ import annotations

from asyncio import Task
from typing import Any

from handfast._runtime.scope.live_scopes import held_scopes, scope_of
from handfast._runtime.scope.tasks.task_creation import TrackedTask
from handfast._runtime.scope.tasks.task_registry import TaskRegistry
from handfast._watch.recording.shown_text import LineTexts, clean
from handfast._watch.snapshot import LiveScope

MAX_SCOPES = 5000


class Scopes:
    """Collects the scopes of the tasks that it is given."""

    def __init__(self) -> None:
        self._found: dict[int, TaskRegistry] = {}

    def note(self, task: Task[Any]) -> int | None:
        """The id of the scope of a task, if it has one."""
        if not isinstance(task, TrackedTask):
            return None  # that of a scope with a task factory is not found either
        registry = scope_of(task)
        if registry is None or (len(self._found) >= MAX_SCOPES and id(registry) not in self._found):
            return None
        self._found[id(registry)] = registry
        return id(registry)

    def shown(self, lines: LineTexts) -> tuple[LiveScope, ...]:
        """All that were found, with those that they hold."""
        parents: dict[int, int] = {}
        waiting = list(self._found.values())
        while waiting:
            registry = waiting.pop()
            for inner in held_scopes(registry):
                parents[id(inner)] = id(registry)
                if id(inner) not in self._found and len(self._found) < MAX_SCOPES:
                    self._found[id(inner)] = inner
                    waiting.append(inner)
        return tuple(
            LiveScope(
                number,
                clean(registry.name),
                lines.of(registry.origin.code, registry.origin.lasti),
                registry.state.value,
                len(registry.live),
                parents.get(number),
            )
            for number, registry in self._found.items()
        )
