"""The verdict on a run of a hosted program: only what its plain run does not do as well.

An assertion of the test counts unless the explorer has cancelled a task: then the test may miss what
that task was to do. So a run with a cancel is judged by what the cancelled task itself did: a lock
that it keeps, a cancel that it ignores, an error that is a mistake in the code.
"""

from __future__ import annotations

import asyncio
from typing import Any

from handfast._explore.hosted.accounting import Accounts
from handfast._explore.hosted.cancelled_call import MISTAKES, Doubt, in_test, judge_call
from handfast._explore.hosted.loops import HostedLoop, LoopSource
from handfast._explore.hosted.program import Ended, HostedProgram, Reference
from handfast._explore.loop.stepping import Aborted, Deadlocked
from handfast._explore.loop.task_table import describe
from handfast._explore.verdict.leftovers import definition
from handfast._explore.verdict.swallower import swallower
from handfast._explore.verdict.verdict import (
    FAILS_IN_NORMAL_RUN,
    FAILS_UNDER_SCHEDULE,
    Verdict,
    aborted_verdict,
    failed_verdict,
    reported_error,
)

# What a task that talks to a peer may meet in any order.
_PEER_ERRORS = (OSError, EOFError, asyncio.CancelledError, TimeoutError)


def judge_abort(loop: HostedLoop, error: Aborted) -> Verdict | None:
    """The verdict on a run that was stopped; its tasks still wait.

    A run with too many steps has none: a test that polls for an event of the outside is endless
    where the outside is never given a chance, and a real loop gives it one.
    """
    return aborted_verdict(loop, error) if isinstance(error, Deadlocked) else None


def reference_of(source: LoopSource, accounts: Accounts) -> Reference:
    """What this run does, as the measure for all others."""
    return Reference(
        complaints={_key(each) for each in source.stepper.complaints},
        cancelled={number: _end(task) for number, task in source.cancelled_tasks.items()},
        unpaired=accounts.unpaired(),
        test_reads_clock=source.test_reads_clock,
    )


def judge_hosted(
    program: HostedProgram, source: LoopSource, accounts: Accounts, ended: Ended | None
) -> Verdict | Doubt | None:
    """The first thing that went wrong and does not go wrong in the plain run."""
    reference = program.reference
    assert reference is not None
    stepper = source.stepper
    for number in source.calls.cancelled:
        if source.calls.judged(number):
            return judge_call(number, source, accounts, reference.unpaired, ended)
    if source.calls.planned and not stepper.accepted:
        return None  # it was not cancelled: this is not the schedule that was to be run
    lost = accounts.lost(reference.unpaired, program.__code__)
    if stepper.accepted:
        return lost or _swallowed(source, reference) or _mistake(source, reference)
    if source.abort is not None:
        verdict: Verdict | None = source.abort[1]
        return verdict
    if ended is not None:
        code = FAILS_UNDER_SCHEDULE if any(stepper.taken) else FAILS_IN_NORMAL_RUN
        when = "under this schedule" if any(stepper.taken) else "in a normal run"
        where = "" if ended.phase == "call" else f" in its {ended.phase}"
        return failed_verdict(code, f"the test fails{where} {when}", ended.error)
    return lost or _complaint(source, reference)


def _complaint(source: LoopSource, reference: Reference) -> Verdict | None:
    for context in source.stepper.complaints:
        error = context.get("exception")
        pending = "destroyed but it is pending" in str(context.get("message"))
        if error is None or isinstance(error, _PEER_ERRORS) or pending:
            continue
        if _key(context) not in reference.complaints:
            return reported_error(context)
    return None


def _swallowed(source: LoopSource, reference: Reference) -> Verdict | None:
    """A cancel that the task ignores, although it obeys the program's own cancel elsewhere."""
    stepper = source.stepper
    for cancel in stepper.accepted:
        task = stepper.cancelled_tasks[cancel.task]
        obeyed = reference.cancelled.get(cancel.task) == "cancelled"
        if obeyed and cancel.task in stepper.survived_cancel and _end(task) == "returned":
            if cancel.task not in stepper.not_blamed and task.cancelling():
                message = f"{describe(task)} was cancelled and returned normally"
                line = swallower(stepper.cancelled_at[cancel.task]) or definition(task)
                return Verdict("HF501", message, (line,))
    return None


def _mistake(source: LoopSource, reference: Reference) -> Verdict | None:
    """An error in the clean-up of a cancelled task that no library raises on purpose."""
    stepper = source.stepper
    for cancel in stepper.accepted:
        task = stepper.cancelled_tasks[cancel.task]
        if not task.done() or task.cancelled():
            continue
        error = task.exception()
        if not isinstance(error, MISTAKES) or in_test(error):
            continue
        if reference.cancelled.get(cancel.task) != _end(task):
            message = f"{describe(task)} was cancelled and fails in its clean-up"
            return failed_verdict(FAILS_UNDER_SCHEDULE, message, error)
    return None


def _end(task: asyncio.Task[Any]) -> str:
    """How a task ended, as text."""
    if not task.done():
        return "pending"
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return "returned" if error is None else type(error).__name__


def _key(context: dict[str, Any]) -> str:
    error = context.get("exception")
    message = str(context.get("message"))
    return f"{type(error).__name__} {message}" if error is not None else message
