"""Tasks that a program offers for cancelling, and how they ended.

A victim is an ordinary task. Only the explorer's loop knows that it may cancel it; on any other
loop nobody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from holdfast.explore.stepping import Stepping

__all__ = ["Outcome", "Victim", "victim"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """How a victim ended: exactly one of `finished`, `failed`, `cancelled` is true."""

    finished: bool
    failed: bool
    cancelled: bool
    value: T | None = None
    error: BaseException | None = None


class Victim(Generic[T]):
    """A task that the explorer may cancel; `await` it for its `Outcome`. `task` is the task."""

    __slots__ = ("task",)

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task

    def __await__(self) -> Generator[Any, None, Outcome[T]]:
        return self._join().__await__()

    async def _join(self) -> Outcome[T]:
        own: asyncio.CancelledError | None = None
        while not self.task.done():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError as error:
                # Whoever awaits a task passes its own cancel on, and waits for the end.
                own = error
                self.task.cancel(*error.args)
        if own is not None:
            raise own
        return _outcome(self.task)


def victim(coro: Coroutine[Any, Any, T], *, name: str | None = None) -> Victim[T]:
    """Start `coro` as a task which the explorer may cancel at any step until it has ended.

    >>> import asyncio
    >>> async def program():
    ...     outcome = await victim(asyncio.sleep(1, "slept"))
    ...     assert outcome.cancelled or outcome.value == "slept"
    >>> from holdfast.explore import explore
    >>> explore(program, cancel=True).counterexample is None
    True
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(coro, name=name)
    if isinstance(loop, Stepping):
        loop.victims.append(len(loop.tasks) - 1)
    return Victim(task)


def _outcome(task: asyncio.Task[T]) -> Outcome[T]:
    if task.cancelled():
        return Outcome(finished=False, failed=False, cancelled=True)
    error = task.exception()
    if error is not None:
        return Outcome(finished=False, failed=True, cancelled=False, error=error)
    return Outcome(finished=True, failed=False, cancelled=False, value=task.result())
