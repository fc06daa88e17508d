"""Cancel a run at a random point: at which of its steps, and how many turns of the loop later.

A step is a suspension of the run's task. The same seed gives the same points if the program takes
the same steps.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

from handfast._asyncio_internals import create_named_task

# One run in so many is not cancelled: it shows how many steps there are.
_NOT_CANCELLED = 10
# Turns of the loop between the suspension and the cancel. Mostly none; after a few, the result that
# the task waits for may be set but not delivered yet.
_TURNS = (0, 0, 0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class CancelPoint:
    """Where a run is cancelled; at step 0 it has not started."""

    step: int
    turns: int = 0


class CancelPointSampler:
    """Draws the points at random."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.steps = 0
        """The most steps that a run has taken which was not cancelled."""

    def draw(self, number: int) -> CancelPoint | None:
        """Where to cancel run `number`; None if it is not to be cancelled."""
        random = Random(f"{self._seed}:{number}")
        if random.randrange(_NOT_CANCELLED) == 0:
            return None
        return CancelPoint(random.randint(0, self.steps), random.choice(_TURNS))

    def learn(self, steps: int) -> None:
        """Note the steps of a run that was not cancelled."""
        self.steps = max(self.steps, steps)


class StepCounter(Coroutine[Any, Any, Any]):
    """Wraps a coroutine and counts its suspensions."""

    def __init__(self, coro: Coroutine[Any, Any, Any], on_step: Callable[[int], object]) -> None:
        self._coro = coro
        self._on_step = on_step
        self.steps = 0

    def send(self, value: Any) -> Any:
        return self._suspended(self._coro.send(value))

    def throw(self, *error: Any) -> Any:
        return self._suspended(self._coro.throw(*error))

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        # cr_frame, cr_await, __qualname__: await stacks show the program's coroutine.
        return getattr(self._coro, name)

    def _suspended(self, waits_for: Any) -> Any:
        self.steps += 1
        self._on_step(self.steps)
        return waits_for


class Run:
    """One run of the program, in a task of its own."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        number: int,
        point: CancelPoint | None = None,
    ) -> None:
        self._loop = loop
        self.number = number
        self.point = point
        self.was_cancelled = False
        """Whether it was cancelled before its end."""
        self._counter = StepCounter(coro, self._on_step)
        self.task: Task[Any] = create_named_task(loop, self._counter, f"run {number}")
        if point is not None and point.step == 0:
            self._cancel_after(0)

    @property
    def cancelled_at(self) -> CancelPoint | None:
        """Where it was cancelled; None if it was not."""
        return self.point if self.was_cancelled else None

    @property
    def steps(self) -> int:
        """How often it was suspended."""
        return self._counter.steps

    async def ended(self, timeout: float) -> bool:
        """Wait until it has ended, at most `timeout` seconds."""
        done, _ = await asyncio.wait({self.task}, timeout=timeout)
        return bool(done)

    def _on_step(self, step: int) -> None:
        if self.point is not None and step == self.point.step:
            self._loop.call_soon(self._cancel_after, self.point.turns)

    def _cancel_after(self, turns: int) -> None:
        if self.task.done():
            return
        if turns > 0:
            self._loop.call_soon(self._cancel_after, turns - 1)
        else:
            self.was_cancelled = True
            self.task.cancel()
