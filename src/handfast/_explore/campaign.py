"""`explore`: run a program under many schedules until one breaks it, and shrink that one.

The strategy picks the schedules, the workers run them, and the first failing record in the order of
the plans wins. So the finding depends on the seed, and not on the number of workers.

How often the program runs: once for each schedule of the search; once more to confirm a finding;
as often as shrinking tries a smaller schedule; and once more if shrinking has found one. The runs
that confirm also record the trace, so nothing runs the program to display the result.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from handfast._explore.loop.determinism import steady
from handfast._explore.replay import traced_run
from handfast._explore.result import Counterexample, Coverage, Exploration
from handfast._explore.search.plan import (
    CancelOption,
    Invariant,
    Model,
    Options,
    Plan,
    Record,
    Settings,
)
from handfast._explore.search.run import Program, run
from handfast._explore.search.shrink import shrink
from handfast._explore.search.strategies import Strategy, make
from handfast._explore.search.workers import Workers, make_workers
from handfast._explore.token import Token, fingerprint

if TYPE_CHECKING:
    from handfast._explore.trace.model import Trace

_SCHEDULES = 1_000
# A run that takes so many times the steps of the plain one, and no fewer than this, is endless.
_FOLD, _STEPS = 20, 10_000


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an exploration has come."""

    schedules: int
    # How many there will be, if that is known.
    of: int | None
    seconds: float
    found: str | None


def explore(
    async_fn: Program,
    *,
    schedules: int | None = None,
    seconds: float | None = None,
    model: Model = "strict",
    strategy: str = "portfolio",
    cancel: CancelOption = False,
    stall: float = 0.1,
    faults: Iterable[str] = (),
    invariant: Invariant = None,
    ignore: Iterable[str] = (),
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    real_io: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Run `async_fn` under up to `schedules` schedules (1,000, or as many as fit into `seconds`).

    >>> import asyncio
    >>> async def program():
    ...     seen = []
    ...     async def note(name, delay):
    ...         await asyncio.sleep(delay)
    ...         seen.append(name)
    ...     await asyncio.gather(note("slow", 0.02), note("quick", 0.01))
    ...     assert seen == ["quick", "slow"]
    >>> explore(program).counterexample.code
    'HF441'
    """
    given = dict(locals())  # the parameters are the fields of Options, and the two below
    del given["async_fn"], given["progress"]
    campaign = Campaign(async_fn, Options(**given))
    campaign.run(progress)
    return campaign.result()


class Campaign:
    """One exploration in progress. After an interrupt, `result` has what was found until then."""

    def __init__(self, program: Program, options: Options | None = None) -> None:
        if not callable(program):
            raise TypeError(f"explore takes an async function without arguments, not {program!r}")
        options = options or Options()
        limit = options.schedules
        if limit is None and options.seconds is None:
            limit = _SCHEDULES
        self._program = program
        self._options = options
        self._limit = limit
        self._settings: Settings = options.settings
        self._strategy: Strategy = make(
            options.strategy, seed=options.seed, schedules=limit, cancels=options.cancels
        )
        self._coverage = Coverage()
        # How many distinct schedules were run with so many departures.
        self._sizes: Counter[int] = Counter()
        self._plain: Record | None = None
        self._found: Record | None = None
        self._counterexample: Counterexample | None = None
        self._began = time.perf_counter()
        self._ended = False
        self._unrepeated = 0
        self._late_timers = False
        self.schedules = 0

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Run schedules until one fails, all have been run, or a limit is reached."""
        workers = self._workers()
        try:
            with steady() as collect:
                while not self._done():
                    plans = self._strategy.batch()
                    if not plans:
                        break
                    # A finding ends the search at once, although records of this batch may follow:
                    # the first in the order of the plans is the same for any number of workers.
                    for record in workers.run(self._within(plans), self._settings):
                        self._take(record)
                        collect(1)
                        if self._found or self._late():
                            break
                    if progress is not None:
                        progress(self._progress())
                if self._found is not None:
                    self._shrink(self._found)
        finally:
            workers.close()
        self._ended = True

    def result(self) -> Exploration:
        """What is known now."""
        bound = self._strategy.bound
        complete = self._strategy.complete and self._found is None
        return Exploration(
            schedules=self.schedules,
            exhausted=complete or (bound or 0) >= 1,
            bound=bound or 0,
            counterexample=self._counterexample,
            coverage=self._coverage,
            settings=self._settings,
            seconds=time.perf_counter() - self._began,
            complete=complete,
            interrupted=not self._ended,
            within=sum(count for size, count in self._sizes.items() if size <= (bound or 0)),
            ignored=tuple(self._options.ignore),
            unrepeated=self._unrepeated,
            late_timers=self._late_timers,
        )

    # --- inside ------------------------------------------------------------------------------

    def _workers(self) -> Workers:
        options = self._options
        if options.cluster is None:
            return make_workers(self._program, options.invariant, options.workers, options.seconds)
        # Importing dask takes a second, if it is installed at all.
        from handfast._explore.search.cluster import Cluster

        return Cluster(self._program, options.invariant, options.cluster)

    def _done(self) -> bool:
        full = self._limit is not None and self.schedules >= self._limit
        return full or self._found is not None or self._late()

    def _late(self) -> bool:
        seconds = self._options.seconds
        if seconds is None or not self.schedules:  # the plain order is always run
            return False
        return time.perf_counter() - self._began >= seconds

    def _within(self, plans: list[Plan]) -> list[Plan]:
        return plans if self._limit is None else plans[: self._limit - self.schedules]

    def _take(self, record: Record) -> None:
        self.schedules += 1
        self._late_timers |= record.late_timers
        self._count(record)
        self._strategy.learn(record)
        if self._plain is None:
            # The first plan is always the plain order. Its length shows what is too long for any
            # other run, and a timer that it leaves armed is not due to a schedule.
            self._plain = record
            limit = min(self._settings.step_limit, max(_STEPS, record.steps * _FOLD))
            usual = record.timers_left
            self._settings = replace(self._settings, step_limit=limit, usual=usual)
        if record.verdict is not None and record.verdict.code not in self._options.ignore:
            self._confirm(record)

    def _confirm(self, record: Record) -> None:
        """Accept a finding if it happens again under the same schedule.

        One that does not is due to something that outlives a run, such as a module that keeps an
        executor from its first use on. It is counted, and the search continues.
        """
        counterexample = self._repeated(record)
        if counterexample is None:
            self._unrepeated += 1
        else:
            self._found = record
            self._counterexample = counterexample

    def _count(self, record: Record) -> None:
        # Random schedules repeat each other; only distinct ones count for a bound.
        known = self._coverage.schedules
        self._coverage.add(record)
        if self._coverage.schedules > known:
            self._sizes[len(record.departed) + record.cancelled] += 1

    def _shrink(self, record: Record) -> None:
        known = [self._plain] if self._plain is not None else []
        # Shrinking runs in this process: its attempts depend on each other.
        best = shrink(record, self._run, known=known)
        if best is not record:
            self._counterexample = self._repeated(best) or self._counterexample

    def _run(self, plan: Plan) -> Record:
        return run(self._program, plan, self._settings, invariant=self._options.invariant)

    def _repeated(self, record: Record) -> Counterexample | None:
        """Run the schedule of a record again, in this process, with a trace.

        None if it does not show the same bug. With real I/O, which cannot be repeated, the record
        is enough, and then there is no trace.
        """
        plan, invariant = record.settled, self._options.invariant
        observed = replace(plan, observe=True)
        seen, story = traced_run(self._program, observed, self._settings, invariant)
        trace: Trace | None = story
        if seen.verdict is None or not seen.verdict.same_bug(record.verdict):
            if not self._settings.real_io:
                return None
            seen, trace = record, None
        assert seen.verdict is not None
        token = Token(
            fingerprint(self._program),
            self._settings,
            plan,
            tuple(seen.points[o].options if o < len(seen.points) else 0 for o, _ in plan.choices),
            seen.steps,
            seen.verdict.code,
        )
        return Counterexample(
            seen.verdict, token, trace, seen.stall, seen.steps, self._program, invariant
        )

    def _progress(self) -> Progress:
        found = self._found.verdict if self._found else None
        seconds = time.perf_counter() - self._began
        return Progress(self.schedules, self._limit, seconds, str(found.message) if found else None)
