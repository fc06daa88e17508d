"""Run a schedule again: from a token, or to record the trace of a finding.

Besides the search itself, this is the only file that runs a program.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from handfast._code_owner import is_machinery
from handfast._explore.hosted.program import HostedProgram
from handfast._explore.loop.determinism import steady
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.result import Counterexample
from handfast._explore.search.deciders import Diverged, Follow
from handfast._explore.search.plan import Invariant, Plan, Record, Settings
from handfast._explore.search.run import Program, run
from handfast._explore.token import Token, fingerprint
from handfast._explore.trace.cancel_text import cancel_lines
from handfast._explore.trace.creation_text import with_creation
from handfast._explore.trace.tracer import Tracer
from handfast._explore.verdict.leftovers import LEFT_OVER

if TYPE_CHECKING:
    from handfast._explore.trace.model import Trace


class Divergence(Exception):
    """A token did not replay: the program does not do what it did when the token was made."""

    def __init__(self, where: str, token: Token, program: Program) -> None:
        self.where = where
        super().__init__(f"{where}; {_likely_cause(token, program)}")


def replay(program: Program, token: str, *, invariant: Invariant = None) -> Counterexample:
    """Run the schedule of `token` once. Divergence if the program does not follow it."""
    return replay_token(program, Token.parse(token), invariant)


def replay_token(program: Program, token: Token, invariant: Invariant) -> Counterexample:
    """Run the schedule of a token that is already parsed."""
    plan = Plan(token.plan.choices, token.plan.cancels)
    follow = Follow(plan.choices, dict(zip(plan.choices, token.options, strict=True)))
    try:
        with steady():
            record, trace = traced_run(program, plan, token.settings, invariant, follow)
    except Diverged as diverged:
        raise Divergence(str(diverged), token, program) from None
    _check(record, token, program)
    assert record.verdict is not None
    return Counterexample(
        record.verdict, token, trace, record.stall, record.steps, program, invariant
    )


def traced_run(
    program: Program,
    plan: Plan,
    settings: Settings,
    invariant: Invariant,
    decides: Follow | None = None,
) -> tuple[Record, Trace]:
    """One run and its trace."""

    def traced() -> tuple[Record, Trace]:
        tracer = Tracer()
        try:
            record = run(
                program, plan, settings, invariant=invariant, observer=tracer, decides=decides
            )
        finally:
            tracer.stop()
        trace = tracer.trace()
        verdict = record.verdict
        if verdict is not None:
            verdict.cancelled = cancel_lines(trace)
            if verdict.code == LEFT_OVER:
                verdict.where = with_creation(verdict.where, trace)
        return record, trace

    return program.isolated(traced) if isinstance(program, HostedProgram) else traced()


def line_of(refused: Uncontrolled) -> str:
    """The program's line that made the refused call; empty if a worker process made it."""
    line = ""
    inside = False
    for frame, number in traceback.walk_tb(refused.__traceback__):
        code = frame.f_code
        if inside and not is_machinery(code.co_filename, "explore"):
            line = f"{code.co_filename}:{number} in {code.co_qualname}"
        # The callers of `run` are further out, the program is further in.
        inside = inside or code is run.__code__
    return line


def _check(record: Record, token: Token, program: Program) -> None:
    if token.settings.real_io:  # only the finding itself can be compared
        if record.verdict is None:
            raise Divergence("the run shows nothing this time", token, program)
        return
    if record.cancelled != len(token.plan.cancels):
        raise Divergence("a task that was cancelled has ended before this time", token, program)
    if record.verdict is None or record.verdict.code != token.code:
        code = record.verdict.code if record.verdict else "nothing"
        raise Divergence(f"the run shows {code} and not {token.code}", token, program)
    if record.steps != token.steps:
        raise Divergence(f"the run took {record.steps} steps and not {token.steps}", token, program)


def _likely_cause(token: Token, program: Program) -> str:
    if token.made_elsewhere:
        here = Token(0, token.settings, token.plan, (), 0, "").python
        return f"the token was made on Python {token.python}, and this is {here}"
    if token.fingerprint != fingerprint(program):
        return "the program's code has changed since the token was made"
    return (
        "the program does not do the same each time: look for the order of a set (PYTHONHASHSEED), "
        "the wall clock, random numbers, id(), or state that outlives a run"
    )
