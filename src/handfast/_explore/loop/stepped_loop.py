"""What the loops of the explorer have in common: a `Stepper`, and how a run ends."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from handfast._code_owner import made_by_program
from handfast._explore.loop.stepping import Stepper
from handfast._explore.loop.task_table import TaskTable
from handfast._explore.search.plan import Settings

if TYPE_CHECKING:
    from handfast._explore.loop.unsupported import Uncontrolled

T = TypeVar("T")
LeftOver = tuple[str, str, tuple[str, ...]]
# The steps that a program may take to settle once its first task has ended.
_SETTLING = 10_000


class SteppedLoop:
    """A mixin above a `BaseEventLoop`. Call `prepare` before the first task is created."""

    # What is left on this loop is for the explorer to judge: the leak detector ignores it.
    judged_elsewhere = True
    # How long a library may take to end what it has running once the program has ended.
    grace = 5.0
    # How late this run has made the loop, or the outside, so far.
    lateness = 0.0
    stepper: Stepper
    uncontrolled: Uncontrolled | None = None

    if TYPE_CHECKING:
        _ready: deque[asyncio.Handle]
        _stopping: bool
        _task_factory: Any

        def time(self) -> float: ...
        def run_forever(self) -> None: ...
        def run_until_complete(self, future: Any) -> Any: ...
        def close(self) -> None: ...

        def timers(self) -> list[asyncio.TimerHandle]:
            """The timers that are still armed."""
            ...

        def left_outside(self) -> LeftOver | None:
            """What the program has left outside: the code, a sentence, and the lines."""
            ...

        def _something_ready(self) -> bool:
            """Whether there is still something to run before `stepper.horizon`."""
            ...

    def prepare(self, stepper: Stepper) -> None:
        """Begin a run."""
        self.stepper = stepper

    @property
    def settings(self) -> Settings:
        return self.stepper.settings

    @property
    def tasks(self) -> TaskTable:
        return self.stepper.tasks

    @property
    def settling(self) -> bool:
        """Whether the program has ended, and only what is ready still runs."""
        return self.stepper.settling

    def choose(
        self,
        kind: str,
        options: int,
        actors: Callable[[], Sequence[Hashable]],
        label: Callable[[int], str],
    ) -> int:
        """A choice of the simulated outside."""
        return self.stepper.choose(kind, options, actors, label)

    def create_task(
        self, coro: Generator[Any, None, T] | Coroutine[Any, Any, T], **options: Any
    ) -> asyncio.Task[T]:
        """As the stock loop does it, and the task gets a number."""
        if self._task_factory is None:
            task = asyncio.Task(coro, loop=self, **options)  # type: ignore[arg-type]
        else:
            task = super().create_task(coro, **options)  # type: ignore[misc]
        self.stepper.add_task(task, own=made_by_program(sys._getframe(1)))
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an unhandled error for the verdict, unless the program has a handler of its own."""
        if getattr(self, "_exception_handler", None) is not None:
            super().call_exception_handler(context)  # type: ignore[misc]
        elif not self.stepper.cleaning_up:
            self.stepper.complaints.append(context)

    def settle(self, *, limit: int = _SETTLING, seconds: float = 0.0) -> None:
        """Run what is ready, in the plain order, until nothing is.

        That includes what becomes ready within so many seconds.
        """
        stepper = self.stepper
        stepper.settle(firing=seconds > 0, horizon=self.time() + seconds)
        stop_at = stepper.steps + limit
        while self._something_ready() and stepper.steps < stop_at:
            # `run_forever` then runs one batch and returns, as after `loop.stop()`.
            self._stopping = True
            self.run_forever()
