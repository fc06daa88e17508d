"""Many runs of one function, cancelled at points drawn by lot: does anything grow?

`stress` is all that users call. After each round what is alive is counted; a trend over the rounds
decides, so a pool that fills once is no growth, and a thing in each hundred runs is.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.census import CHECKS, Thing, recording
from holdfast.census.memory import watching
from holdfast.census.tasks import TaskAlive
from holdfast.leaks.cancelling import Lots, Run
from holdfast.leaks.outcomes import Outcomes
from holdfast.leaks.rounds import Rounds
from holdfast.leaks.stress_report import StressReport
from holdfast.runtime.runner import run as run_to_the_end
from holdfast.runtime.stacks import await_chain

__all__ = ["Course", "Endless", "Progress", "stress"]

Cancel = Literal["random"] | None

LEAST = 10
"""Fewer runs tell no trend."""
_ROUNDS = 20
# How many runs warm up, at least and at most: a pool has found its size by then.
_WARM_UP = 10, 500
# Each that gets stuck costs the whole deadline: after so many it is enough.
_STUCK = 3
# Whoever wants to see how far it is hears of it so often.
_EVERY = 0.1
# Seconds for all that is left on the loop in the end.
_END = 5.0


def stress(
    async_fn: Callable[[], Coroutine[Any, Any, Any]],
    n: int = 1000,
    *,
    cancel: Cancel = "random",
    seed: int = 0,
    deadline: float = 10.0,
    memory: bool = False,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> StressReport:
    """Run `async_fn` again and again, each run cancelled at a random step, and look what grows.

    The first run is left alone, and its error is raised. The runs come one after another, in one
    loop. `seed` decides where they are cancelled; `cancel=None` leaves all of them alone. A run
    that does not end within `deadline` seconds is named in the report. `memory` traces where
    memory is allocated, too, which is slow.

    >>> import asyncio
    >>> forgotten = []
    >>> async def leaky():
    ...     forgotten.append(asyncio.create_task(asyncio.sleep(3600)))
    ...     await asyncio.sleep(0)
    >>> report = stress(leaky, 20, cancel=None)
    >>> report.clean
    False
    >>> [(growth.check, growth.per_run) for growth in report.growth if growth.check == "tasks"]
    [('tasks', 1.0)]
    """
    course = Course(
        async_fn,
        n,
        cancel=cancel,
        seed=seed,
        deadline=deadline,
        memory=memory,
        loop_factory=loop_factory,
    )
    course.run(progress)
    return course.report()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come."""

    runs: int
    of: int
    seconds: float
    growing: tuple[str, ...]
    """The checks in which something grows, as it looks until now."""


class Endless(TimeoutError):
    """The first run does not end, though nobody has cancelled it or anything before."""


class Course:
    """One stress under way; it takes what `stress` takes. After an interrupt `report` says what
    was seen until then."""

    def __init__(
        self,
        async_fn: Callable[[], Coroutine[Any, Any, Any]],
        n: int = 1000,
        *,
        cancel: Cancel = "random",
        seed: int = 0,
        deadline: float = 10.0,
        memory: bool = False,
        loop_factory: Callable[[], AbstractEventLoop] | None = None,
    ) -> None:
        _check_arguments(async_fn, n, cancel, deadline)
        self._fn = async_fn
        self._n = n
        self._cancel = cancel
        self._seed = seed
        self._deadline = deadline
        self._memory = memory
        self._loop_factory = loop_factory
        checks = [check for check in CHECKS if memory or check != "memory"]
        self._rounds = Rounds(checks, self._is_ours)
        self._outcomes = Outcomes()
        self._lots = Lots(seed)
        self._warm_up = max(_WARM_UP[0], min(n // _ROUNDS, _WARM_UP[1]))
        self._began = self._told = time.perf_counter()
        self._progress: Callable[[Progress], object] = _nobody
        # All runs, those that warm up included; the first has number 1.
        self._runs = 0
        self._ended = False
        self.first_error: BaseException | None = None
        """What the first run failed with, if it did."""

    def run(self, progress: Callable[[Progress], object] | None = None) -> None:
        """All the runs."""
        _refuse_a_running_loop()
        self._progress = progress or _nobody
        with recording(), self._tracing():
            run_to_the_end(self._all, deadline=_END, loop_factory=self._loop_factory)
        self._ended = True

    def _tracing(self) -> AbstractContextManager[None]:
        return watching() if self._memory else nullcontext()

    # --- the runs --------------------------------------------------------------------------------

    async def _all(self) -> None:
        await self._first()
        rounds = min(self._n, _ROUNDS)
        for each in range(rounds + 1):
            done = self._n * each // rounds
            if not await self._up_to(self._warm_up + done):
                return
            await self._rounds.count(done)
        await self._rounds.count_again()

    async def _first(self) -> None:
        """It is left alone: a function that fails without any cancel has another problem."""
        run = self._begin()
        if not await run.ended(self._deadline):
            self.first_error = _endless(run, self._deadline)
        elif run.task.cancelled():
            self.first_error = RuntimeError("the first run was cancelled, and not by stress()")
        else:
            self.first_error = run.task.exception()
        if self.first_error is not None:
            raise self.first_error
        self._lots.learn(run.steps)

    async def _up_to(self, number: int) -> bool:
        """The runs up to this one; whether to go on after them."""
        while self._runs < number and len(self._outcomes.stuck) < _STUCK:
            await self._end(self._begin())
            self._tell()
        return self._runs == number

    def _begin(self) -> Run:
        self._runs += 1
        cancels = self._cancel is not None and self._runs > 1
        point = self._lots.draw(self._runs) if cancels else None
        coro = self._fn()
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"stress() takes an async function, not {self._fn!r}")
        return Run(asyncio.get_running_loop(), coro, self._runs, point)

    async def _end(self, run: Run) -> None:
        if await run.ended(self._deadline):
            self._outcomes.note(run, warms_up=run.number <= self._warm_up)
            if not run.struck:
                self._lots.learn(run.steps)
            return
        self._outcomes.note_stuck(run, self._deadline)
        run.task.cancel()  # once more: it may wait for a lock that a cancelled run has kept
        if not await run.ended(min(1.0, self._deadline)):
            self._outcomes.left.add(run.task)
        elif not run.task.cancelled():
            run.task.exception()  # it is told of already: its error is not told once more

    def _is_ours(self, thing: Thing) -> bool:
        return isinstance(thing, TaskAlive) and thing.task in self._outcomes.left

    # --- telling ---------------------------------------------------------------------------------

    def _tell(self) -> None:
        now = time.perf_counter()
        if now - self._told >= _EVERY:
            self._told = now
            counted = max(0, self._runs - self._warm_up)
            growing = self._rounds.growing
            self._progress(Progress(counted, self._n, now - self._began, growing))

    def report(self) -> StressReport:
        """What was seen."""
        outcomes = self._outcomes
        return StressReport(
            runs=max(0, self._runs - self._warm_up),
            warm_up=min(self._runs, self._warm_up),
            cancelled=outcomes.struck.total(),
            steps=len(outcomes.struck),
            growth=self._rounds.growth(),
            judged=self._rounds.enough,
            stuck=tuple(outcomes.stuck),
            failed=outcomes.failed,
            errors=tuple(outcomes.errors),
            not_checked=tuple(self._not_checked()),
            interrupted=not self._ended,
            seed=self._seed,
            seconds=time.perf_counter() - self._began,
        )

    def _not_checked(self) -> Iterator[str]:
        yield from self._rounds.not_checked
        if not self._memory:
            yield "memory (memory=True traces it)"
        if self._cancel is None:
            yield "cancellation: no run was cancelled"
        elif not self._lots.steps:
            yield "cancellation in its midst: the function never waits"
        if self._outcomes.never_worked:
            yield "the function itself: it failed each time that it was left alone"
        left = self._n + self._warm_up - self._runs
        if left:
            yield f"the {left:,} runs that were still to come"


def _endless(run: Run, deadline: float) -> Endless:
    stands = "".join(f"\n    stands at  {line}" for line in await_chain(run.task)[-1:])
    return Endless(
        f"the first run, which nobody cancelled, did not end within {deadline:g} s: "
        f"stress() needs a function that ends by itself, or a longer deadline{stands}"
    )


def _nobody(progress: Progress) -> None:
    """Nobody wants to know."""


# --- wrong use ---------------------------------------------------------------------------------


def _check_arguments(async_fn: object, n: int, cancel: object, deadline: float) -> None:
    if not callable(async_fn):
        raise TypeError(f"stress() takes an async function, not {async_fn!r}")
    if n < LEAST:
        raise ValueError(f"n={n}: fewer than {LEAST} runs tell no trend")
    if cancel not in ("random", None):
        raise ValueError(f"cancel={cancel!r}: use 'random' or None")
    if not deadline > 0:
        raise ValueError(f"deadline={deadline}: must be more than 0 seconds")


def _refuse_a_running_loop() -> None:
    if asyncio._get_running_loop() is not None:
        raise RuntimeError(
            "stress() runs a loop of its own and cannot be called while one runs in this thread; "
            "call it from a plain function, or there: await asyncio.to_thread(stress, ...)"
        )
