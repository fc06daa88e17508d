"""Cancelling a run at a point drawn by lot: which step of it, and how many turns of the loop later.

A step is a suspension of the run's task. The same seed gives the same points, if the program takes
the same steps; no run knows of the one before it.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from random import Random
from typing import Any

__all__ = ["Counted", "Lots", "Point", "Run"]

# One run in so many is left alone: it tells how many steps there are.
_LEFT_ALONE = 10
# Turns of the loop between the suspension and its cancel. Mostly none; later, what it waits for
# may have come and not been handed over yet.
_TURNS = (0, 0, 0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Point:
    """Where a run is cancelled: at its step 0 it has not begun."""

    step: int
    turns: int = 0


class Lots:
    """Draws the points."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.steps = 0
        """As many as a run has taken until now that nobody cancelled."""

    def draw(self, number: int) -> Point | None:
        """Where to cancel run `number`; None: nowhere."""
        lots = Random(f"{self._seed}:{number}")
        if lots.randrange(_LEFT_ALONE) == 0:
            return None
        return Point(lots.randint(0, self.steps), lots.choice(_TURNS))

    def learn(self, steps: int) -> None:
        """A run that nobody cancelled took so many."""
        self.steps = max(self.steps, steps)


class Counted(Coroutine[Any, Any, Any]):
    """A coroutine whose suspensions are counted; in all else it is the one inside."""

    def __init__(self, coro: Coroutine[Any, Any, Any], told: Callable[[int], object]) -> None:
        self._coro = coro
        self._told = told
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
        # cr_frame, cr_await, __qualname__: whoever asks where the task stands means the program.
        return getattr(self._coro, name)

    def _suspended(self, waits_for: Any) -> Any:
        self.steps += 1
        self._told(self.steps)
        return waits_for


class Run:
    """One run of the program, in a task of its own."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        number: int,
        point: Point | None = None,
    ) -> None:
        self._loop = loop
        self.number = number
        self.point = point
        self.struck = False
        """Whether the cancel came before its end."""
        self._counted = Counted(coro, self._suspended)
        self.task: Task[Any] = loop.create_task(self._counted, name=f"run {number}")
        if point is not None and point.step == 0:
            self._strike(0)

    @property
    def cancelled_at(self) -> Point | None:
        """Where it was cancelled; None: it was not."""
        return self.point if self.struck else None

    @property
    def steps(self) -> int:
        """How often it has been suspended."""
        return self._counted.steps

    async def ended(self, deadline: float) -> bool:
        """Wait until it has ended, so many seconds at most."""
        done, _ = await asyncio.wait({self.task}, timeout=deadline)
        return bool(done)

    def _suspended(self, step: int) -> None:
        if self.point is not None and step == self.point.step:
            self._loop.call_soon(self._strike, self.point.turns)

    def _strike(self, turns: int) -> None:
        if self.task.done():
            return
        if turns > 0:
            self._loop.call_soon(self._strike, turns - 1)
        else:
            self.struck = True
            self.task.cancel()
