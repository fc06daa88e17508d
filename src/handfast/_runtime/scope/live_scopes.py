"""The scopes that have live tasks, for a tool that shows them: read out of the tasks themselves.

There is no list of all scopes, because it would cost each scope an entry.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast._runtime.scope.tasks.task_registry import TaskRegistry


def scope_of(task: asyncio.Task[Any]) -> TaskRegistry | None:
    """The registry of the scope that has this task, from any thread.

    `ancestry.registry_of` reads the frame of the wrapper, which creates a frame object for each task
    and keeps it. This reads the arguments as `origin_and_start_time` does.
    """
    if task.done():
        return None
    for value in gc.get_referents(wrapper_of(task)):
        if type(value) is TaskRegistry:
            return value
    return None


def held_scopes(registry: TaskRegistry) -> Iterator[TaskRegistry]:
    """The scopes that a scope holds."""
    for hosted in list(registry.held.values()):
        inner = hosted.inner
        if inner is not None and isinstance(inner.registry, TaskRegistry):
            yield inner.registry
