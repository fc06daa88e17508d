"""All schedules of a small program, one by one, and what came of each.

Depth first over every choice point of the explored loop. There is a bound; a program that has
more schedules is not walked at all, so that a set of outcomes is either whole or not there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.stepping import Deadlocked
from handfast._explore.search.plan import Plan, Record, Settings
from handfast._explore.search.run import run
from tests.support.stock_loop import StockLoop

# Writes what happens into the log that it is given.
Logging = Callable[[list[str]], Coroutine[Any, Any, object]]
# The log, then the verdict in a word: "" if there is none.
Outcome = tuple[str, ...]


class TooMany(Exception):
    """The program has more schedules than the bound."""


def schedules(
    program: Callable[[], Coroutine[Any, Any, object]], settings: Settings, *, bound: int = 20_000
) -> Iterator[Record]:
    """Every schedule of `program`, the plain one first."""
    answers: list[int] | None = []
    while answers is not None:
        if bound == 0:
            raise TooMany
        bound -= 1
        choices = tuple((i, answer) for i, answer in enumerate(answers) if answer)
        record = run(program, Plan(choices=choices, observe=True), settings)
        assert record.taken[: len(answers)] == answers, "the program is not deterministic"
        yield record
        answers = _next(record)


def _next(record: Record) -> list[int] | None:
    for at in range(len(record.taken) - 1, -1, -1):
        if record.taken[at] + 1 < record.points[at].options:
            return [*record.taken[:at], record.taken[at] + 1]
    return None


def outcomes(
    program: Logging, settings: Settings | None = None, *, bound: int = 20_000
) -> dict[Outcome, Record]:
    """Every outcome that the explorer lists, with the first schedule that has it."""
    found: dict[Outcome, Record] = {}
    log: list[str] = []

    async def logged() -> None:
        log.clear()
        await program(log)

    for record in schedules(logged, settings or Settings(), bound=bound):
        found.setdefault(_outcome(log, record), record)
    return found


def logs(program: Logging, settings: Settings | None = None) -> set[str]:
    """Every outcome as one word: the entries of the log, joined."""
    return {"".join(outcome) for outcome in outcomes(program, settings)}


def plain(program: Logging, settings: Settings | None = None) -> Outcome:
    """The outcome in the plain order."""
    log: list[str] = []
    record = run(lambda: program(log), Plan(), settings or Settings())
    return _outcome(log, record)


def stock(program: Logging, loop: StockLoop, settings: Settings | None = None) -> Outcome:
    """The outcome on the stock loop."""
    log: list[str] = []
    record = run(lambda: program(log), Plan(), settings or Settings(), loop=loop)
    return _outcome(log, record)


def _outcome(log: list[str], record: Record) -> Outcome:
    verdict = record.verdict
    said = () if verdict is None else (f"{verdict.code} {verdict.error_type}".strip(),)
    return (*log, *said)


# --- from a schedule of the explorer to a clock for the stock loop -----------------------------


# It takes this much to be later than an equal deadline.
_MOMENT = 3e-7


class Impossible(AssertionError):
    """No clock makes the stock loop do what the explorer did."""


class _Traced(ExploredLoop):
    """Writes down how many timers each poll fired, and how late each timer was set."""

    def __init__(self) -> None:
        super().__init__()
        self.fired: list[int] = []
        self.late: list[float] = []
        # By id: a timer that is put off changes its hash.
        self.calls: dict[int, int] = {}

    def _run_once(self) -> None:
        self.fired.append(0)
        super()._run_once()

    def _fire(self, wake: float) -> None:
        before = len(self.timers())
        super()._fire(wake)
        self.fired[-1] = before - len(self.timers())

    def _start_late(self, when: float) -> None:
        before = self.lateness
        super()._start_late(when)
        self.late.append(self.lateness - before)

    def call_at(self, when: float, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        timer = super().call_at(when, *args, **options)
        self.calls[id(timer)] = len(self.late) - 1
        return timer

    def call_later(self, delay: float, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        timer = super().call_later(delay, *args, **options)
        self.calls[id(timer)] = len(self.late) - 1
        return timer

    def _overtake(self, early: int, late: int) -> None:
        before = self.lateness
        timer = self.timers()[early]
        super()._overtake(early, late)
        self.late[self.calls[id(timer)]] += self.lateness - before + _MOMENT


class _Clocked(StockLoop):
    """The stock loop on a clock that is moved so that each poll finds the same timers due."""

    def __init__(self, traced: _Traced) -> None:
        super().__init__(stall=0.0)
        self._fired = iter(traced.fired)
        self._late = iter(traced.late)
        self._clock_resolution = 1e-12

    def _starts(self) -> None:
        self._pass(next(self._late, 0.0))

    def _pass(self, seconds: float) -> None:
        self._now += seconds
        self.lateness += seconds

    def _wait(self, timeout: float | None) -> float:
        if self.settling:
            return super()._wait(timeout)
        if timeout is None:
            raise Deadlocked
        self._now += timeout
        count = next(self._fired)
        whens = sorted(timer.when() for timer in self.timers())
        if count:
            self._pass(max(0.0, whens[count - 1] - self._now))
        due = sum(when <= self._now for when in whens)
        if due != count:
            raise Impossible(f"{due} timers are due at {self._now}, and {count} fired")
        return 0.0


def retrace(program: Logging, record: Record, settings: Settings) -> Outcome:
    """The outcome of the stock loop on a clock made after `record`. Only timers are clocked, not
    what comes from outside."""
    log: list[str] = []
    traced = _Traced()
    run(lambda: program(log), Plan(choices=record.departed), settings, loop=traced)
    log.clear()
    clocked = _Clocked(traced)
    again = run(lambda: program(log), Plan(), settings, loop=clocked)
    if again.verdict is not None and isinstance(again.verdict.error, Impossible):
        raise again.verdict.error
    if clocked.lateness > settings.stall + 1e-5:
        raise Impossible(f"it takes {clocked.lateness} s of lateness")
    return _outcome(log, again)
