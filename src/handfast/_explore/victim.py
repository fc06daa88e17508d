"""Tasks that the explorer may cancel, and how they ended.

A victim is an ordinary task. Only the loop of the explorer cancels it; on any other loop nothing
does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from handfast._explore.loop.stepped_loop import SteppedLoop
from handfast._outcome import Outcome

T = TypeVar("T")


class Victim(Generic[T]):
    """A task that the explorer may cancel; `await` it for its `Outcome`. `task` is the task."""

    __slots__ = ("_name", "task")

    def __init__(self, task: asyncio.Task[T], name: str) -> None:
        self.task = task
        self._name = name

    def __await__(self) -> Generator[Any, None, Outcome[str, T]]:
        return self._join().__await__()

    async def _join(self) -> Outcome[str, T]:
        # `asyncio.wait` and not `await self.task`: the latter raises CancelledError both for a cancel of
        # the victim and for one of the caller, and the two could not be distinguished.
        own: asyncio.CancelledError | None = None
        while not self.task.done():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError as error:
                # As `await task` does: pass the own cancel on, and wait for the end.
                own = error
                self.task.cancel(*error.args)
        if own is not None:
            raise own
        return Outcome.of(self._name, self.task)


def victim(coro: Coroutine[Any, Any, T], *, name: str | None = None) -> Victim[T]:
    """Start `coro` as a task which the explorer may cancel at any step until it has ended.

    >>> import asyncio
    >>> async def program():
    ...     outcome = await victim(asyncio.sleep(1, "slept"))
    ...     assert outcome.cancelled or outcome.value == "slept"
    >>> from handfast.explore import explore
    >>> explore(program, cancel=True).counterexample is None
    True
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(coro, name=name)
    if isinstance(loop, SteppedLoop):
        loop.stepper.victims.append(len(loop.tasks) - 1)
    # Not the automatic name "Task-7": that counts on from run to run.
    label = name or getattr(coro, "__qualname__", None) or "victim"
    return Victim(task, label)
