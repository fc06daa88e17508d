"""What an exploration gives back: how much was tried, and the counterexample if there is one."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.explore.coverage import Coverage
from holdfast.explore.deciders import Diverged, Follow
from holdfast.explore.plan import Plan, Record, Settings
from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.run import Program, run
from holdfast.explore.steady import steady
from holdfast.explore.token import Token, fingerprint
from holdfast.explore.verdicts import Verdict

if TYPE_CHECKING:
    from typing import Literal

    from holdfast.explore.story import Story
    from holdfast.explore.trace import Trace

__all__ = ["Counterexample", "Divergence", "Exploration", "line_of", "replay"]

_NOT_THEIRS = (os.path.dirname(asyncio.__file__), os.path.dirname(__file__))


class Divergence(Exception):
    """A token did not replay: the program does not do what it did when the token was made."""

    def __init__(self, where: str, token: Token, program: Program) -> None:
        self.where = where
        super().__init__(f"{where}; {_likely_cause(token, program)}")


class Counterexample:
    """A schedule that breaks the program, and all that can be told of it."""

    def __init__(
        self,
        program: Program,
        record: Record,
        token: Token,
        invariant: Callable[[], object] | None = None,
        realised: bool | None = None,
    ) -> None:
        assert record.verdict is not None
        self._program = program
        self._record = record
        self._token = token
        self._invariant = invariant
        self._story: Story | None = None
        self.verdict: Verdict = record.verdict
        # Only for the models `latency` and `wild`: whether a stock loop shows it too.
        self.realised = realised

    @property
    def code(self) -> str:
        """The bug kind, as `holdfast explain` knows it."""
        return self.verdict.code

    @property
    def error(self) -> BaseException | None:
        """The exception, if it was one."""
        return self.verdict.error

    @property
    def token(self) -> str:
        """What `--replay` takes."""
        return str(self._token)

    @property
    def model(self) -> Literal["strict", "latency", "wild"]:
        return self._token.settings.model

    @property
    def departures(self) -> tuple[str, ...]:
        """What differs from the plain order, in words."""
        from holdfast.explore.rows import lay_out

        said = []
        for row in lay_out(self.story, self.verdict):
            if row.departure:
                at = None if row.place is None else self.story.places[row.place]
                where = "" if at is None else f" ({at.file}:{at.line})"
                said.append(f"{row.who} {row.words}".strip() + where)
        return tuple(said)

    @property
    def stall(self) -> float:
        """How late, in seconds, the loop or the world has to be."""
        return self._record.stall

    @property
    def steps(self) -> int:
        return self._record.steps

    @property
    def story(self) -> Story:
        """The run in full, told by replaying it once."""
        if self._story is None:
            from holdfast.explore.trace import Trace

            trace = Trace()
            self._again(trace)
            self._story = trace.story()
        return self._story

    def timeline(self, width: int = 100) -> str:
        """The run as swimlanes, for a terminal."""
        from holdfast.explore.timeline import render

        return render(self.story, self.verdict, width=width)

    def to_html(self, replay_line: str = "") -> str:
        """The run as one self-contained page."""
        from holdfast.explore.page import page

        return page(self.story, self.verdict, self.token, replay_line)

    def report(self, replay_line: str = "", size: str = "", *, width: int = 100) -> str:
        """All that a person wants to read who has to mend it, as plain text. `replay_line` is the
        command that shows it again, `size` says how much was tried."""
        lateness = f"lateness needed: {self.stall:.3f} s" if self.stall else ""
        try:
            # The timeline begins with the verdict: the departures go between the two.
            head, _, lanes = self.timeline(width).partition("\n\n")
            parts = [self._label() + head, self._numbered(), lateness, lanes.rstrip("\n")]
        except Divergence as divergence:
            parts = [str(self), lateness, f"not shown: the timeline, since {divergence}"]
        again = f"replay: {replay_line}" if replay_line else f"token: {self.token}"
        if self._token.settings.real_io:
            again = "no token: real I/O comes as it comes, and cannot be replayed"
        parts += [size, f"{again}\nwhat it is: holdfast explain {self.code}"]
        return "\n\n".join(part for part in parts if part)

    def _numbered(self) -> str:
        if not self.departures:
            return "no departure: the plain order shows it"
        lines = [f"  {n}. {text}" for n, text in enumerate(self.departures, start=1)]
        return "\n".join(["departures from the plain order:", *lines])

    def _label(self) -> str:
        label = "" if self.model == "strict" else f"model {self.model}{_realised(self.realised)}"
        return f"{label}\n" if label else ""

    def replay(self) -> Verdict:
        """Run the schedule once more, exactly; Divergence if the program does not follow it."""
        return self._again(None)

    def _again(self, trace: Trace | None) -> Verdict:
        record = _replayed(self._program, self._token, self._invariant, trace)
        assert record.verdict is not None
        return record.verdict

    def __str__(self) -> str:
        label = "" if self.model == "strict" else f" (model {self.model}{_realised(self.realised)})"
        lines = [f"{self.code}{label} {self.verdict.message}"]
        lines += [f"    {line}" for line in self.verdict.where]
        return "\n".join(lines)


@dataclass(slots=True)
class Exploration:
    """What was tried and found. `exhausted`: every schedule with at most `bound` departures from
    the plain order was run; without it the result is a sample of `schedules`."""

    schedules: int
    exhausted: bool
    bound: int
    counterexample: Counterexample | None
    coverage: Coverage
    settings: Settings
    seconds: float = 0.0
    # No schedule lies beyond the bound.
    complete: bool = False
    # Ctrl-C, or the seconds were over.
    interrupted: bool = False
    # How many of the schedules lie within the bound.
    within: int = 0
    # The codes that were asked not to count.
    ignored: tuple[str, ...] = ()
    # Findings that did not come again under the same schedule, and were not believed.
    unrepeated: int = 0

    @property
    def replayable(self) -> bool:
        """Real descriptors and clocks come as they come."""
        return not self.settings.real_io

    @property
    def summary(self) -> str:
        """How much was tried, in one sentence."""
        count = "1 schedule" if self.schedules == 1 else f"{self.schedules:,} schedules"
        size = "a sample"
        if self.complete:
            size = "all there are"
        elif self.exhausted:
            size = f"all up to bound {self.bound} ({self.within:,})"
            if self.schedules > self.within:
                size += ", then a sample"
        said = f"found in {count}" if self.counterexample else f"{count}: {size}"
        if self.coverage.points_seen:
            done, seen = self.coverage.points_cancelled, self.coverage.points_seen
            said += f"; cancelled at {done:,} of {seen:,} points"
        return said

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What was not looked at, so that nobody takes it for clean."""
        missing = []
        if self.interrupted:
            missing.append("whatever was still to be tried when it was interrupted")
        if self.settings.real_io:
            missing.append(
                "other moments of real I/O: it comes as it comes, and no token replays it"
            )
        if self.counterexample is not None:
            return tuple(missing)  # the rest is of no use to who has a bug to mend
        if self.settings.cancel == "no":
            missing.append("cancellation: no task was cancelled")
        elif not self.coverage.points_seen:
            missing.append(
                "cancellation: the program makes no task of its own; name one with victim(), or "
                "cancel the program itself (cancel='main')"
            )
        if self.unrepeated:
            missing.append(
                f"{self.unrepeated} finding(s) that did not come again: something outlives a run"
            )
        if self.ignored:
            missing.append(f"what is ignored: {', '.join(self.ignored)}")
        return tuple(missing)

    def __str__(self) -> str:
        found = str(self.counterexample) if self.counterexample else "nothing found"
        return f"{found}\n{self.summary}"


def replay(
    program: Program, token: str, *, invariant: Callable[[], object] | None = None
) -> Counterexample:
    """Run the schedule that `token` stands for. Divergence if the program does not follow it."""
    parsed = Token.parse(token)
    record = _replayed(program, parsed, invariant, None)
    return Counterexample(program, record, parsed, invariant)


def line_of(refused: Uncontrolled) -> str:
    """The line of the program that made the call. A worker's is not known here: then it is empty."""
    line = ""
    inside = False
    for frame, number in traceback.walk_tb(refused.__traceback__):
        code = frame.f_code
        if inside and not code.co_filename.startswith(_NOT_THEIRS):
            line = f"{code.co_filename}:{number} in {code.co_qualname}"
        # Above this are those who asked for the run, and below it is the program.
        inside = inside or code.co_filename == run.__code__.co_filename
    return line


def _replayed(
    program: Program,
    token: Token,
    invariant: Callable[[], object] | None,
    trace: Trace | None,
) -> Record:
    plan = Plan(token.plan.choices, token.plan.cancels)
    follow = Follow(plan.choices, dict(zip(plan.choices, token.options, strict=True)))
    try:
        with steady():
            record = run(
                program, plan, token.settings, invariant=invariant, observer=trace, decides=follow
            )
    except Diverged as diverged:
        raise Divergence(str(diverged), token, program) from None
    if not token.settings.real_io:
        _check(record, token, program)
    elif record.verdict is None:  # real I/O comes as it comes: nothing else is compared
        raise Divergence("the run shows nothing this time", token, program)
    return record


def _check(record: Record, token: Token, program: Program) -> None:
    if record.cancelled != len(token.plan.cancels):
        raise Divergence("a task that was cancelled has ended before this time", token, program)
    if record.verdict is None or record.verdict.code != token.code:
        said = record.verdict.code if record.verdict else "nothing"
        raise Divergence(f"the run shows {said} and not {token.code}", token, program)
    if record.steps != token.steps:
        raise Divergence(f"the run took {record.steps} steps and not {token.steps}", token, program)


def _likely_cause(token: Token, program: Program) -> str:
    here = Token(0, token.settings, token.plan, (), 0, "").python
    if token.python != here:
        return f"the token was made on Python {token.python}, and this is {here}"
    if token.fingerprint != fingerprint(program):
        return "the program's code has changed since the token was made"
    return (
        "the program does not do the same each time: look for the order of a set (PYTHONHASHSEED), "
        "the wall clock, random numbers, id(), or state that outlives a run"
    )


def _realised(realised: bool | None) -> str:
    if realised is None:
        return ""
    return ", realised on a stock loop" if realised else ", unrealised on a stock loop"
