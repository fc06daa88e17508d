"""The tasks of a run by number, in the order of their creation.

asyncio refers to its tasks weakly, and so does this table: a task that the program drops must be
collected when it would be without an explorer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from weakref import ref


class TaskTable:
    """Iterating gives the tasks that still exist; the length counts all that ever did."""

    __slots__ = ("_numbers", "_refs")

    def __init__(self) -> None:
        self._refs: list[ref[asyncio.Task[Any]]] = []
        # By identity, which a later task may have again: so what is found here is compared.
        self._numbers: dict[int, int] = {}

    def append(self, task: asyncio.Task[Any]) -> None:
        self._numbers[id(task)] = len(self._refs)
        self._refs.append(ref(task))

    def get(self, number: int) -> asyncio.Task[Any] | None:
        """The task with this number; None if it no longer exists, or never did."""
        return self._refs[number]() if number < len(self._refs) else None

    def index(self, task: object) -> int:
        """The number of a task; -1 if it is not in the table."""
        number = self._numbers.get(id(task), -1)
        return number if number >= 0 and self._refs[number]() is task else -1

    def __contains__(self, task: object) -> bool:
        return self.index(task) >= 0

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        for each in self._refs:
            task = each()
            if task is not None:
                yield task

    def numbered(self) -> Iterator[asyncio.Task[Any] | None]:
        """Every task in the order of the numbers; None for one that no longer exists."""
        return (each() for each in self._refs)

    def __len__(self) -> int:
        return len(self._refs)


def task_of(handle: Any) -> asyncio.Task[Any] | None:
    """The task whose step or wake-up a handle is; None for any other callback."""
    owner = getattr(handle._callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


def describe(task: asyncio.Task[Any]) -> str:
    """A name of the task that is the same in every run: its own, else its coroutine's."""
    name = task.get_name()
    if not name.startswith("Task-"):
        return name
    return str(getattr(task.get_coro(), "__qualname__", name))
