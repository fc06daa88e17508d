"""What an exploration returns: how much was tried, and the counterexample if there is one.

These are plain values. Nothing here runs the program, except `Counterexample.replay()`, which says
so and leaves it to `replay`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handfast._explore.search.plan import Invariant, Model, Plan, Record, Settings
from handfast._explore.token import Token
from handfast._explore.trace.choice_text import counted, milliseconds
from handfast._explore.verdict.verdict import Verdict

if TYPE_CHECKING:
    from handfast._explore.search.run import Program
    from handfast._explore.trace.model import Trace


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample:
    """A schedule that breaks the program, with its verdict and its trace.

    `stall` is how late, in seconds, the loop or the outside has to be; `steps` the length of the
    run. `trace` is None if the run used real I/O and could not be repeated.
    """

    verdict: Verdict
    _token: Token
    trace: Trace | None
    stall: float
    steps: int
    _program: Program
    _invariant: Invariant = None

    @property
    def code(self) -> str:
        """The bug kind, which `handfast explain` describes."""
        return self.verdict.code

    @property
    def error(self) -> BaseException | None:
        """The exception, if the program failed with one."""
        return self.verdict.error

    @property
    def token(self) -> str:
        """The schedule as text, for `replay()` and `--replay`."""
        return str(self._token)

    @property
    def plan(self) -> Plan:
        """The schedule as data."""
        return self._token.plan

    @property
    def settings(self) -> Settings:
        return self._token.settings

    @property
    def model(self) -> Model:
        return self._token.settings.model

    @property
    def departures(self) -> tuple[str, ...]:
        """What differs from the plain order, as text."""
        if self.trace is None:
            return ()
        from handfast._explore.render.rows import lay_out

        lines = []
        for row in lay_out(self.trace, self.verdict):
            if row.departure:
                at = None if row.place is None else self.trace.places[row.place]
                where = "" if at is None else f" ({at.file}:{at.line})"
                lines.append(f"{row.who} {row.words}".strip() + where)
        return tuple(lines)

    def timeline(self, width: int = 100) -> str:
        """The run as swimlanes, for a terminal; empty if there is no trace."""
        if self.trace is None:
            return ""
        from handfast._explore.render.timeline import render

        return render(self.trace, self.verdict, width=width)

    def to_html(self, replay_line: str = "") -> str:
        """The run as one self-contained page."""
        from handfast._explore.render.page import page
        from handfast._explore.trace.model import Trace

        return page(self.trace or Trace(), self.verdict, self.token, replay_line)

    def report(self, replay_line: str = "", size: str = "", *, width: int = 100) -> str:
        """The whole finding as plain text.

        `replay_line` is the command that shows it again, `size` says how much was tried.
        """
        late = f"the loop or an external event has to be {milliseconds(self.stall)} late"
        lateness = late if self.stall else ""
        if self.trace is None:
            parts = [str(self), lateness, "no timeline: real I/O did not show this a second time"]
        else:
            # The timeline begins with the verdict: the departures go between the two.
            head, _, lanes = self.timeline(width).partition("\n\n")
            parts = [self._label() + head, self._numbered(), lateness, lanes.rstrip("\n")]
        again = f"replay: {replay_line}" if replay_line else f"token: {self.token}"
        if self._token.settings.real_io:
            again = "no token: real I/O cannot be replayed"
        parts += [size, f"{again}\nwhat it is: handfast explain {self.code}"]
        return "\n\n".join(part for part in parts if part)

    def _numbered(self) -> str:
        departures = self.departures
        if not departures:
            return "happens in a normal run"
        lines = [f"  {n}. {text}" for n, text in enumerate(departures, start=1)]
        return "\n".join(["what differs from a normal run:", *lines])

    def _label(self) -> str:
        return "" if self.model == "strict" else f"model {self.model}\n"

    def replay(self) -> Verdict:
        """Run the schedule once more; Divergence if the program does not follow it."""
        from handfast._explore.replay import replay_token

        return replay_token(self._program, self._token, self._invariant).verdict

    def __str__(self) -> str:
        label = "" if self.model == "strict" else f" (model {self.model})"
        lines = [f"{self.code}{label} {self.verdict.message}"]
        lines += [f"    {line}" for line in (*self.verdict.where, *self.verdict.cancelled)]
        return "\n".join(lines)


@dataclass(slots=True)
class Coverage:
    """Distinct schedules, distinct pairs of departures, and cancels out of those possible.

    `points_seen` counts each (task, instant) of the plain run at which a task could be cancelled;
    `points_cancelled` how many of them were, in runs without another departure before them.
    """

    points_seen: int = 0
    choice_points: int = 0
    _schedules: set[int] = field(default_factory=set, repr=False)
    _pairs: set[tuple[object, object]] = field(default_factory=set, repr=False)
    _cancelled: set[tuple[int, int]] = field(default_factory=set, repr=False)

    @property
    def schedules(self) -> int:
        return len(self._schedules)

    @property
    def pairs(self) -> int:
        return len(self._pairs)

    @property
    def points_cancelled(self) -> int:
        return len(self._cancelled)

    def add(self, record: Record) -> None:
        """Count one run."""
        choices, cancels = record.departed, record.plan.cancels[: record.cancelled]
        # Hashes instead of plans: a long search would keep millions of tuples.
        self._schedules.add(hash((choices, cancels)))
        path = [*choices, *((c.instant, c.task, "cancel") for c in cancels)]
        self._pairs.update(zip([None, *path], path, strict=False))
        if not path and record.plan.observe:
            self.points_seen = sum(s.last - s.first + 1 for s in record.segments)
            self.choice_points = len(record.points)
        if cancels and not choices:
            self._cancelled.add((cancels[0].instant, cancels[0].task))

    def __str__(self) -> str:
        text = f"{self.schedules:,} distinct schedules, {self.pairs:,} pairs of departures"
        if self.points_seen:
            text += f", cancelled at {self.points_cancelled:,} of {self.points_seen:,} points"
        return text


@dataclass(slots=True)
class Exploration:
    """What was tried and found.

    `exhausted`: every schedule with at most `bound` departures from the plain order was run;
    without it the result is a sample of `schedules`. `late_timers`: the program has timers so close
    to each other that a late loop could order them in ways that are not among the schedules.
    """

    schedules: int
    exhausted: bool
    bound: int
    counterexample: Counterexample | None
    coverage: Coverage
    settings: Settings
    seconds: float = 0.0
    # There are no schedules beyond the bound.
    complete: bool = False
    # By Ctrl-C.
    interrupted: bool = False
    # How many of the schedules are within the bound.
    within: int = 0
    # The codes that do not count.
    ignored: tuple[str, ...] = ()
    # Findings that did not happen again under the same schedule, and were dropped.
    unrepeated: int = 0
    # A loop that is late could order the timers of the program in ways that were not listed.
    late_timers: bool = False

    @property
    def replayable(self) -> bool:
        """Whether a token can replay a run: not with real descriptors and clocks."""
        return not self.settings.real_io

    @property
    def summary(self) -> str:
        """How much was tried, in one line."""
        text = self._size()
        if self.coverage.points_seen:
            done, seen = self.coverage.points_cancelled, self.coverage.points_seen
            text += f"; cancelled at {done:,} of {seen:,} points"
        if self.exhausted and self.late_timers and not self.counterexample:
            text += "; some orders of late timers are not among them"
        return text

    def _size(self) -> str:
        if self.counterexample:
            return f"found in {counted(self.schedules, 'schedule')}"
        if self.complete and self.schedules == 1:
            return "nothing here can be reordered: 1 schedule"
        if self.complete:
            return f"all {counted(self.schedules, 'schedule')}"
        if not self.exhausted:
            return f"a sample of {counted(self.schedules, 'schedule')}"
        changes = counted(self.bound, "change")
        text = f"all {counted(self.within, 'schedule')} with at most {changes}"
        others = self.schedules - self.within
        if others == 1:
            text += ", plus 1 random one"
        elif others:
            text += f", plus {others:,} random ones"
        return text

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What was not tested, so that no one takes it for correct. One sentence each."""
        missing = []
        if self.interrupted:
            missing.append("interrupted: the remaining schedules were not run")
        if self.settings.real_io:
            missing.append("other timings of real I/O were not tested; no token can replay it")
        if self.counterexample is not None:
            return tuple(missing)  # there is a bug to fix first
        if self.settings.cancel == "no":
            missing.append("cancellation was not tested; add cancel=...")
        elif not self.coverage.points_seen:
            missing.append(
                "cancellation was not tested: the program creates no task of its own; mark one "
                "with victim(), or cancel the program itself with cancel='main'"
            )
        if self.unrepeated:
            missing.append(
                f"{counted(self.unrepeated, 'finding')} did not happen again under the same "
                "schedule and did not count: some state outlives a run"
            )
        if self.ignored:
            missing.append(f"ignored: {', '.join(self.ignored)}")
        return tuple(missing)

    def __str__(self) -> str:
        found = str(self.counterexample) if self.counterexample else "nothing found"
        return f"{found}\n{self.summary}"
