"""`stress`: run one function many times, cancel it at random points, and find what grows.

What is alive is counted after each round. A trend over the rounds decides: a pool that fills once
is no growth, one object in every hundred runs is.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from handfast._asyncio_internals import running_loop, untested_python
from handfast._await_stack import await_chain
from handfast._census import CHECKS, LiveObject, recording
from handfast._census.kinds.memory import tracing
from handfast._leaks.stress.cancel_points import CancelPointSampler, Run
from handfast._leaks.stress.growth import Rounds
from handfast._leaks.stress.outcomes import Outcomes
from handfast._leaks.stress.report import StressReport
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast._runtime.program.run import run as run_until_closed

Cancel = Literal["random"] | None

LEAST = 10
"""Fewer runs show no trend."""
_ROUNDS = 20
# The least and the most runs to warm up: by then a pool has its final size.
_WARM_UP = 10, 500
# Stop after so many stuck runs: each takes the whole deadline.
_STUCK = 3
# Seconds between two calls of `progress`.
_EVERY = 0.1
# Seconds for closing the loop in the end.
_END = 5.0


def stress(
    async_fn: Callable[[], Coroutine[Any, Any, Any]],
    n: int = 1000,
    *,
    cancel: Cancel = "random",
    seed: int = 0,
    timeout: float = CLOSE_TIMEOUT,
    memory: bool = False,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> StressReport:
    """Run `async_fn` many times, cancel each run at a random step, and report what grows.

    The first run is not cancelled, and its error is raised. The runs follow one another on one
    loop. `seed` determines where they are cancelled; `cancel=None` cancels none. A run that does
    not end within `timeout` seconds is in the report. `memory` also traces where memory is
    allocated, which is slow.

    >>> import asyncio
    >>> forgotten = []
    >>> async def leaky():
    ...     forgotten.append(asyncio.create_task(asyncio.sleep(3600)))
    ...     await asyncio.sleep(0)
    >>> report = stress(leaky, 20, cancel=None)
    >>> report.clean
    False
    >>> {growth.check: growth.per_run for growth in report.growth if growth.check == "tasks"}
    {'tasks': 1.0}
    """
    stress_run = StressRun(
        async_fn,
        n,
        cancel=cancel,
        seed=seed,
        timeout=timeout,
        memory=memory,
        loop_factory=loop_factory,
    )
    stress_run.run(progress)
    return stress_run.report()


@dataclass(frozen=True, slots=True)
class Progress:
    """How many runs are done."""

    runs: int
    of: int
    seconds: float
    growing: tuple[str, ...]
    """The kinds of objects that grow, as far as is known."""


class FirstRunTimeout(TimeoutError):
    """The first run, which is not cancelled, does not end."""


@dataclass
class StressRun:
    """The work of `stress`, with the same arguments. After an interrupt, `report` has what was seen
    until then."""

    async_fn: Callable[[], Coroutine[Any, Any, Any]]
    n: int = 1000
    _: KW_ONLY
    cancel: Cancel = "random"
    seed: int = 0
    timeout: float = CLOSE_TIMEOUT
    memory: bool = False
    loop_factory: Callable[[], AbstractEventLoop] | None = None
    first_error: BaseException | None = field(default=None, init=False)
    """The error of the first run, if there was one."""

    def __post_init__(self) -> None:
        _check_arguments(self.async_fn, self.n, self.cancel, self.timeout)
        checks = [check for check in CHECKS if self.memory or check != "memory"]
        self._rounds = Rounds(checks, self._is_stuck)
        self._outcomes = Outcomes()
        self._sampler = CancelPointSampler(self.seed)
        self._warm_up = max(_WARM_UP[0], min(self.n // _ROUNDS, _WARM_UP[1]))
        self._began = self._last_progress = time.perf_counter()
        self._progress: Callable[[Progress], object] = _ignore
        # The number of runs so far, including those that warm up.
        self._runs = 0
        self._is_complete = False

    def run(self, progress: Callable[[Progress], object] | None = None) -> None:
        """Do all the runs."""
        _refuse_a_running_loop()
        self._progress = progress or _ignore
        with recording(), self._tracing():
            run_until_closed(self._all, timeout=_END, loop_factory=self.loop_factory)
        self._is_complete = True

    def _tracing(self) -> AbstractContextManager[None]:
        return tracing() if self.memory else nullcontext()

    # --- the runs --------------------------------------------------------------------------------

    async def _all(self) -> None:
        await self._first()
        rounds = min(self.n, _ROUNDS)
        for each in range(rounds + 1):
            done = self.n * each // rounds
            if not await self._up_to(self._warm_up + done):
                return
            await self._rounds.count(done)
        await self._rounds.count_again()

    async def _first(self) -> None:
        """It is not cancelled: a function that fails without a cancel has another problem."""
        run = self._begin()
        if not await run.ended(self.timeout):
            self.first_error = _first_run_timeout(run, self.timeout)
        elif run.task.cancelled():
            self.first_error = RuntimeError("the first run was cancelled, and not by stress()")
        else:
            self.first_error = run.task.exception()
        if self.first_error is not None:
            raise self.first_error
        self._sampler.learn(run.steps)

    async def _up_to(self, number: int) -> bool:
        """Do the runs up to this number; whether to continue after them."""
        while self._runs < number and len(self._outcomes.stuck) < _STUCK:
            await self._end(self._begin())
            self._call_progress()
        return self._runs == number

    def _begin(self) -> Run:
        self._runs += 1
        cancels = self.cancel is not None and self._runs > 1
        point = self._sampler.draw(self._runs) if cancels else None
        coro = self.async_fn()
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"stress() takes an async function, not {self.async_fn!r}")
        return Run(asyncio.get_running_loop(), coro, self._runs, point)

    async def _end(self, run: Run) -> None:
        if await run.ended(self.timeout):
            self._outcomes.note(run, warms_up=run.number <= self._warm_up)
            if not run.was_cancelled:
                self._sampler.learn(run.steps)
            return
        self._outcomes.note_stuck(run, self.timeout)
        run.task.cancel()  # again: it may wait for a lock that a cancelled run has kept
        if not await run.ended(min(1.0, self.timeout)):
            self._outcomes.not_ended.add(run.task)
        elif not run.task.cancelled():
            run.task.exception()  # it is reported: asyncio shall not log its error as well

    def _is_stuck(self, live: LiveObject) -> bool:
        return live.check == "tasks" and live.target in self._outcomes.not_ended

    # --- report ----------------------------------------------------------------------------------

    def _call_progress(self) -> None:
        now = time.perf_counter()
        if now - self._last_progress >= _EVERY:
            self._last_progress = now
            counted = max(0, self._runs - self._warm_up)
            growing = self._rounds.growing
            self._progress(Progress(counted, self.n, now - self._began, growing))

    def report(self) -> StressReport:
        """The report of the runs so far."""
        outcomes = self._outcomes
        return StressReport(
            runs=max(0, self._runs - self._warm_up),
            warm_up=min(self._runs, self._warm_up),
            cancelled=outcomes.cancelled_at_step.total(),
            steps=len(outcomes.cancelled_at_step),
            growth=self._rounds.growth(),
            judged=self._rounds.enough,
            stuck=tuple(outcomes.stuck),
            failed=outcomes.failed,
            errors=tuple(outcomes.errors),
            not_checked=tuple(self._not_checked()),
            interrupted=not self._is_complete,
            seed=self.seed,
            seconds=time.perf_counter() - self._began,
        )

    def _not_checked(self) -> Iterator[str]:
        yield from self._rounds.not_checked
        if (untested := untested_python()) is not None:
            yield untested
        if not self.memory:
            yield "memory (memory=True traces it)"
        if self.cancel is None:
            yield "cancellation: no run was cancelled"
        elif not self._sampler.steps:
            yield "cancellation at a step: the function never waits"
        if self._outcomes.never_worked:
            yield "the function itself: it failed each time it was not cancelled"
        left = self.n + self._warm_up - self._runs
        if left:
            yield f"the {left:,} runs that were still to come"


def _first_run_timeout(run: Run, timeout: float) -> FirstRunTimeout:
    waiting = "".join(f"\n    waiting at  {line}" for line in await_chain(run.task)[-1:])
    return FirstRunTimeout(
        f"the first run, which is not cancelled, did not end within {timeout:g} s: "
        f"stress() needs a function that ends by itself, or a longer timeout{waiting}"
    )


def _ignore(progress: Progress) -> None:
    """The default for `progress`."""


# --- wrong use ---------------------------------------------------------------------------------


def _check_arguments(async_fn: object, n: int, cancel: object, timeout: float) -> None:
    if not callable(async_fn):
        raise TypeError(f"stress() takes an async function, not {async_fn!r}")
    if n < LEAST:
        raise ValueError(f"n={n}: fewer than {LEAST} runs show no trend")
    if cancel not in ("random", None):
        raise ValueError(f"cancel={cancel!r}: use 'random' or None")
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: must be more than 0 seconds")


def _refuse_a_running_loop() -> None:
    if running_loop() is not None:
        raise RuntimeError(
            "stress() runs a loop of its own and cannot be called while one runs in this thread; "
            "call it from a plain function, or there: await asyncio.to_thread(stress, ...)"
        )
