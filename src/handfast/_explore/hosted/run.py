"""One run of a hosted program under a plan. The counterpart of `search.run` for coroutines."""

from __future__ import annotations

import contextvars
import random
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from handfast._explore.hosted.accounting import Accounts
from handfast._explore.hosted.cancelled_call import CallCounter, CancelledCalls, Doubt
from handfast._explore.hosted.loops import LoopSource
from handfast._explore.hosted.program import HostedProgram
from handfast._explore.hosted.verdict import judge_abort, judge_hosted, reference_of
from handfast._explore.loop.stepping import Stepper
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.deciders import decider
from handfast._explore.search.plan import Plan, Record, Segment, Settings
from handfast._explore.search.run import recorded
from handfast._explorer_internals import outside_running_loop

if TYPE_CHECKING:
    from handfast._explore.search.cancel_points import CancelPointObserver

# How many tasks are cancelled in the same call at the same line.
_ALIKE = 4


def run_hosted(
    program: HostedProgram, plan: Plan, stepper: Stepper, segments: CancelPointObserver | None
) -> Record:
    """Run the program, which creates its loops itself, and judge it by its plain run."""
    record, doubt = _run(program, plan, stepper, segments)
    if doubt is not None and _due_to_call(program, record.settled, stepper.settings, doubt):
        record.verdict = doubt.verdict
    return record


def _run(
    program: HostedProgram,
    plan: Plan,
    stepper: Stepper,
    segments: CancelPointObserver | None = None,
    counter: CallCounter | None = None,
) -> tuple[Record, Doubt | None]:
    expected = program.reference.cancelled if program.reference is not None else {}
    planned = {cancel.task for cancel in plan.cancels} | ({counter.number} if counter else set())
    calls = CancelledCalls(planned, expected)
    source = LoopSource(program, stepper, judge_abort, calls)
    accounts = Accounts(lambda: stepper.settling)
    if segments is not None:
        segments.marks = source.in_call
    tracing = sys.gettrace()
    with outside_running_loop(), source.installed(), accounts.installed():
        random.seed(0)
        if counter is not None:
            counter.trace(source)
        try:
            ended = contextvars.copy_context().run(program)
        finally:
            if counter is not None:
                sys.settrace(tracing)
            program.keeps_loop = source.in_use
            source.close_all()
    if source.uncontrolled is not None:
        raise source.uncontrolled
    if not source.used and ended is None:
        raise Uncontrolled("the event loop", "the test does not run on a loop of asyncio's own", "")
    record = recorded(stepper, plan, source.lateness)
    if segments is not None:
        record.segments = _cancellable(segments, record.instants, source)
    if program.reference is None:
        program.reference = reference_of(source, accounts)
    judged = judge_hosted(program, source, accounts, ended)
    if isinstance(judged, Doubt):
        return record, judged
    record.verdict = judged
    return record, None


def _due_to_call(program: HostedProgram, plan: Plan, settings: Settings, doubt: Doubt) -> bool:
    """Whether the test passes by what is in doubt if the call is refused at its beginning."""
    code = doubt.frame.f_code
    counter = CallCounter(doubt.number, code)
    stepper = Stepper(settings, decider(plan), plan.cancels)
    again = _run(program, plan, stepper, counter=counter)[1]
    if again is None or again.frame not in counter.frames:
        return False
    counter = CallCounter(doubt.number, code, counter.frames.index(again.frame) + 1)
    plan = Plan(plan.choices)
    record, other = _run(program, plan, Stepper(settings, decider(plan)), counter=counter)
    return counter.refused and other is None and record.verdict is None


def _cancellable(segments: CancelPointObserver, instants: int, source: LoopSource) -> list[Segment]:
    """Where tasks that the program cancels itself can be cancelled earlier, and calls at all."""
    found = []
    alike: Counter[int] = Counter()
    for segment in segments.finish(instants):
        until = source.cancelled.get(segment.task)
        if until is not None:
            if segment.first < until:
                found.append(replace(segment, last=min(segment.last, until - 1)))
        elif (segment.task, segment.first) in segments.marked:
            alike[segment.state] += 1
            if alike[segment.state] <= _ALIKE:
                found += _ends_of(segment)
    return found


def _ends_of(segment: Segment) -> list[Segment]:
    """The first and the last instant: between them, only other tasks have taken steps."""
    first, last = segment.first, segment.last
    if last - first < 2:
        return [segment]
    return [replace(segment, last=first), replace(segment, first=last)]
