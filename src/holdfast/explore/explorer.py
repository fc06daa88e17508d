"""`explore`: run a program under many schedules until one breaks it, and shrink that one.

The strategy says which schedules, the crew runs them, the first failing record in the order of
the plans wins. So the finding depends on the seed, and not on how many workers there are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.catalogue import UnknownCode, kind
from holdfast.explore.coverage import Coverage
from holdfast.explore.plan import Cancelling, Model, Plan, Record, Settings
from holdfast.explore.results import Counterexample, Exploration
from holdfast.explore.run import Program, run
from holdfast.explore.shrink import settled, shrink
from holdfast.explore.steady import steady
from holdfast.explore.strategies import STRATEGIES, Strategy, make
from holdfast.explore.token import Token, fingerprint
from holdfast.explore.workers import Crew, crew

__all__ = ["FAULTS", "MODELS", "Campaign", "Cancel", "Progress", "explore"]

FAULTS = ("reset", "eof", "executor", "kill")
MODELS = ("strict", "latency", "wild")
_CANCELLING: dict[object, Cancelling] = {
    False: "no",
    True: "tasks",
    "double": "double",
    "main": "main",
}
_CANCELS = {"no": 0, "tasks": 1, "main": 1, "double": 2}
_SCHEDULES = 1_000
# A run that takes so many times the steps of the plain one, and no fewer than this, has no end.
_FOLD, _STEPS = 20, 10_000

Cancel = bool | Literal["double", "main"]


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
    cancel: Cancel = False,
    stall: float = 0.1,
    faults: Iterable[str] = (),
    invariant: Callable[[], object] | None = None,
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
    campaign = Campaign(
        async_fn,
        schedules=schedules,
        seconds=seconds,
        model=model,
        strategy=strategy,
        cancel=cancel,
        stall=stall,
        faults=faults,
        invariant=invariant,
        ignore=ignore,
        seed=seed,
        workers=workers,
        cluster=cluster,
        real_io=real_io,
    )
    campaign.run(progress)
    return campaign.result()


class Campaign:
    """One exploration under way; it takes what `explore` takes. After an interrupt `result` says
    what was found until then."""

    def __init__(
        self,
        program: Program,
        *,
        schedules: int | None = None,
        seconds: float | None = None,
        model: Model = "strict",
        strategy: str = "portfolio",
        cancel: Cancel = False,
        stall: float = 0.1,
        faults: Iterable[str] = (),
        invariant: Callable[[], object] | None = None,
        ignore: Iterable[str] = (),
        seed: int = 0,
        workers: int = 1,
        cluster: str | None = None,
        real_io: bool = False,
    ) -> None:
        _check_program(program, invariant)
        _check_words(model=model, strategy=strategy)
        _check_numbers(schedules, seconds, stall, seed, workers)
        settings = Settings(model, _cancelling(cancel), stall, _faults(faults), bool(real_io))
        if schedules is None and seconds is None:
            schedules = _SCHEDULES
        self._program = program
        self._settings = settings
        self._limit = schedules
        self._seconds = seconds
        self._invariant = invariant
        self._ignore = _ignored(ignore)
        self._seed = seed
        self._workers = workers
        self._cluster = cluster
        self._strategy: Strategy = make(
            strategy, seed=seed, schedules=schedules, cancels=_CANCELS[settings.cancel]
        )
        self._coverage = Coverage()
        # How many distinct schedules were run with so many departures.
        self._sizes: Counter[int] = Counter()
        self._found: Record | None = None
        self._counterexample: Counterexample | None = None
        self._began = time.perf_counter()
        self._ended = False
        self._unrepeated = 0
        self.schedules = 0

    def run(self, progress: Callable[[Progress], None] | None = None) -> None:
        """Until something is found, all is tried, or the bound is reached."""
        hands = self._crew()
        try:
            with steady() as sweep:
                while not self._done():
                    plans = self._strategy.batch()
                    if not plans:
                        break
                    for record in hands.run(self._within(plans), self._settings):
                        self._take(record)
                        sweep(1)
                        if self._found or self._late():
                            break
                    if progress is not None:
                        progress(self._progress())
                if self._found is not None:
                    self._shrink(self._found)
        finally:
            hands.close()
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
            ignored=tuple(sorted(self._ignore)),
            unrepeated=self._unrepeated,
        )

    # --- inside ------------------------------------------------------------------------------

    def _crew(self) -> Crew:
        if self._cluster is None:
            return crew(self._program, self._invariant, self._workers)
        from holdfast.explore.cluster import Cluster  # dask, if it is there at all, takes a second

        return Cluster(self._program, self._invariant, self._cluster)

    def _done(self) -> bool:
        full = self._limit is not None and self.schedules >= self._limit
        return full or self._found is not None or self._late()

    def _late(self) -> bool:
        if self._seconds is None or not self.schedules:  # the plain order is always run
            return False
        return time.perf_counter() - self._began >= self._seconds

    def _within(self, plans: list[Plan]) -> list[Plan]:
        return plans if self._limit is None else plans[: self._limit - self.schedules]

    def _take(self, record: Record) -> None:
        self.schedules += 1
        self._count(record)
        self._strategy.learn(record)
        if self.schedules == 1:
            # The plain run says how long a run is; beyond a multiple of that it has no end.
            limit = min(self._settings.step_limit, max(_STEPS, record.steps * _FOLD))
            usual = record.timers_left
            self._settings = replace(self._settings, step_limit=limit, usual=usual)
        if record.verdict is not None and record.verdict.code not in self._ignore:
            self._believe(record)

    def _believe(self, record: Record) -> None:
        """A finding that does not come again is due to something that outlives a run (a module that
        keeps an executor from its first use on): it is counted, and the search goes on."""
        counterexample = self._told(record)
        if counterexample is None:
            self._unrepeated += 1
        else:
            self._found = record
            self._counterexample = counterexample

    def _count(self, record: Record) -> None:
        known = self._coverage.schedules
        self._coverage.add(record)
        if self._coverage.schedules > known:
            self._sizes[settled(record).departures] += 1

    def _shrink(self, record: Record) -> None:
        best = shrink(record, self._again)
        shows: bool | None = None
        if self._settings.model != "strict" and best.verdict is not None:
            from holdfast.explore.stock import realised

            shows = realised(self._program, best.verdict, self._settings, seed=self._seed)
        self._counterexample = self._told(best, shows) or self._counterexample

    def _again(self, plan: Plan) -> Record:
        return run(self._program, plan, self._settings, invariant=self._invariant)

    def _told(self, record: Record, shows: bool | None = None) -> Counterexample | None:
        """The counterexample, from a run of this process that says what it was asked; None if it
        does not come again."""
        plan = settled(record)
        seen = self._again(replace(plan, observe=True))
        if seen.verdict is None or not seen.verdict.same_bug(record.verdict):
            if not self._settings.real_io:
                return None
            seen = record  # real I/O comes as it comes; what was seen was seen
        token = Token(
            fingerprint(self._program),
            self._settings,
            plan,
            tuple(seen.points[o].options if o < len(seen.points) else 0 for o, _ in plan.choices),
            seen.steps,
            seen.verdict.code if seen.verdict else "",
        )
        return Counterexample(self._program, seen, token, self._invariant, shows)

    def _progress(self) -> Progress:
        found = self._found.verdict if self._found else None
        seconds = time.perf_counter() - self._began
        return Progress(self.schedules, self._limit, seconds, str(found.message) if found else None)


# --- what the caller may get wrong -------------------------------------------------------------


def _cancelling(cancel: object) -> Cancelling:
    try:
        return _CANCELLING[cancel]
    except (KeyError, TypeError):
        raise ValueError(f"cancel={cancel!r}: use False, True, 'double' or 'main'") from None


def _faults(faults: Iterable[str]) -> tuple[str, ...]:
    asked = _listed("faults", faults)
    for fault in asked:
        if fault not in FAULTS:
            raise ValueError(f"faults: {fault!r} is not one of {', '.join(FAULTS)}")
    return asked


def _ignored(codes: Iterable[str]) -> frozenset[str]:
    """Codes or names of the catalogue, as codes: one that is misspelt would ignore nothing."""
    try:
        return frozenset(kind(code).code for code in _listed("ignore", codes))
    except UnknownCode as error:
        raise ValueError(f"ignore: {error}") from None


def _listed(name: str, words: Iterable[str]) -> tuple[str, ...]:
    try:
        asked = (words,) if isinstance(words, str) else tuple(words)
    except TypeError:
        raise TypeError(f"{name}={words!r}: must be a list of words") from None
    for word in asked:
        if not isinstance(word, str):
            raise TypeError(f"{name}: {word!r} is no word")
    return asked


def _check_program(program: Any, invariant: Any) -> None:
    if not callable(program):
        raise TypeError(f"explore takes an async function without arguments, not {program!r}")
    if invariant is not None and not callable(invariant):
        raise TypeError(f"invariant={invariant!r}: must be a function without arguments")


def _check_words(*, model: object, strategy: object) -> None:
    if model not in MODELS:
        raise ValueError(f"model={model!r}: use one of {', '.join(MODELS)}")
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy={strategy!r}: use one of {', '.join(STRATEGIES)}")


def _check_numbers(schedules: Any, seconds: Any, stall: Any, seed: Any, workers: Any) -> None:
    for name, value in (("schedules", schedules), ("seed", seed), ("workers", workers)):
        if not isinstance(value, int) and not (name == "schedules" and value is None):
            raise TypeError(f"{name}={value!r}: must be a whole number")
    for name, value in (("seconds", seconds), ("stall", stall)):
        if not isinstance(value, (int, float)) and not (name == "seconds" and value is None):
            raise TypeError(f"{name}={value!r}: must be a number of seconds")
    if not 0 <= stall < float("inf"):
        raise ValueError(f"stall={stall}: lateness is 0 or more seconds")
    for name, value in (("schedules", schedules), ("seconds", seconds), ("workers", workers)):
        if value is not None and not value > 0:
            raise ValueError(f"{name}={value}: must be more than 0")
