"""The tasks of a run by number, in the order of their creation.

asyncio holds its tasks weakly, and so does the roll: a task that the program drops must go when it
would go without an explorer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from weakref import ref

__all__ = ["Roll", "describe"]


class Roll:
    """Iterating gives the tasks that are still there; the length counts all that ever were."""

    __slots__ = ("_refs",)

    def __init__(self) -> None:
        self._refs: list[ref[asyncio.Task[Any]]] = []

    def append(self, task: asyncio.Task[Any]) -> None:
        self._refs.append(ref(task))

    def get(self, number: int) -> asyncio.Task[Any] | None:
        """The task with this number; None if it is gone, or was never there."""
        return self._refs[number]() if number < len(self._refs) else None

    def index(self, task: object) -> int:
        """The number of a task; -1 if it is not on the roll."""
        # From the end: whoever is asked for is mostly young.
        for number in range(len(self._refs) - 1, -1, -1):
            if self._refs[number]() is task:
                return number
        return -1

    def __contains__(self, task: object) -> bool:
        return self.index(task) >= 0

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        for each in self._refs:
            task = each()
            if task is not None:
                yield task

    def __len__(self) -> int:
        return len(self._refs)


def describe(task: asyncio.Task[Any]) -> str:
    """A task in a word that is the same in every run: its own name, else its coroutine's."""
    name = task.get_name()
    if not name.startswith("Task-"):
        return name
    return str(getattr(task.get_coro(), "__qualname__", name))
