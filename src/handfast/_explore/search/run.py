"""One run of a program under a plan.

The program gets a new loop and a new context. What it leaves running is ended here, after the
verdict, so that it cannot influence the next run.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from handfast._asyncio_internals import forget_ended_tasks, mute_destroyed_warning
from handfast._explore.hosted.program import HostedProgram
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.real_io_loop import RealLoop
from handfast._explore.loop.stepped_loop import SteppedLoop
from handfast._explore.loop.stepping import Aborted, Decider, Observer, Stepper
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.cancel_points import CancelPointObserver
from handfast._explore.search.deciders import Diverged, decider
from handfast._explore.search.plan import Invariant, Plan, Record, Segment, Settings
from handfast._explore.search.trail import TrailObserver
from handfast._explore.search.watchdog import TooLong
from handfast._explore.verdict.leftovers import timers_left
from handfast._explore.verdict.verdict import judge
from handfast._explorer_internals import missing_for_explorer, outside_running_loop

Program = Callable[[], Coroutine[Any, Any, Any]] | HostedProgram
# How often leftover tasks are cancelled, and how many steps they get each time.
_ROUNDS = 3
_LAST_STEPS = 1_000
_FOREVER = float("inf")
# As after `random.seed(0)`, which takes twice as long.
_SEEDED = random.Random(0).getstate()


def run(
    program: Program,
    plan: Plan,
    settings: Settings,
    *,
    invariant: Invariant = None,
    observer: Observer | None = None,
    decides: Decider | None = None,
    loop: SteppedLoop | None = None,
) -> Record:
    """Run `program` under `plan`.

    `decides` replaces the decider of the plan, `loop` the loop that the settings select.
    """
    _refuse_unknown_python()
    segments = None
    if observer is None and plan.observe and settings.cancel != "no":
        observer = segments = CancelPointObserver()
    trail = None
    if observer is None and plan.trail:
        observer = trail = TrailObserver()
    decides = decides or decider(plan)
    if isinstance(program, HostedProgram):
        from handfast._explore.hosted.run import run_hosted  # it imports this package

        stepper = Stepper(settings, decides, plan.cancels, observer, points=plan.observe)
        hosted = program
        return hosted.isolated(lambda: _walked(run_hosted(hosted, plan, stepper, segments), trail))
    loop = loop or (RealLoop() if settings.real_io else ExploredLoop())
    states: list[int | None] = []
    if plan.states:
        from handfast._explore.search.states.recorder import StateRecorder

        since = plan.choices[-1][0] if plan.choices else -1
        decides = StateRecorder(decides, loop, since)
        states = decides.states
    stepper = Stepper(settings, decides, plan.cancels, observer, invariant, points=plan.observe)
    loop.prepare(stepper)
    # The caller may be inside a loop of its own, as a test of pytest-asyncio is. The new context
    # keeps context variables that the program sets from leaking into the next run.
    with outside_running_loop():
        random.setstate(_SEEDED)  # the program gets the same random numbers in each run
        try:
            record = contextvars.copy_context().run(drive, loop, program, plan)
            record.states = states
            if segments is not None:
                record.segments = _of_victims(segments, record.instants, loop)
            return _walked(record, trail)
        finally:
            loop.close()


def _walked(record: Record, trail: TrailObserver | None) -> Record:
    if trail is not None:
        record.trail = frozenset(trail.edges)
    return record


def _refuse_unknown_python() -> None:
    """Do not explore on a Python that lacks something the explorer controls by its private name."""
    missing = missing_for_explorer()
    if missing:
        version = ".".join(map(str, sys.version_info[:3]))
        raise Uncontrolled(
            ", ".join(missing),
            f"Python {version} does not have it, so the program was not checked",
            "use a Python that this version supports, or a newer version of handfast",
        )


def drive(loop: SteppedLoop, program: Program, plan: Plan) -> Record:
    """Run the program to its end, and judge it."""
    ended: BaseException | None = None
    main = loop.create_task(_coroutine(program))
    try:
        try:
            loop.run_until_complete(main)
        except (KeyboardInterrupt, SystemExit, Diverged, Uncontrolled, TooLong):
            raise
        except BaseException as error:
            ended = error
        # The program may have caught the error; a verdict on such a run would mean nothing.
        if loop.uncontrolled is not None:
            raise loop.uncontrolled
        record = recorded(loop.stepper, plan, loop.lateness)
        # After an abort the program is in the middle of a step: whatever ran now could hide the
        # state that the verdict is about.
        if not isinstance(ended, Aborted):
            loop.settle()
        strict = bool(loop.stepper.victims) or loop.settings.cancel == "main"
        record.verdict = judge(loop, main, ended, strict_victims=strict)
        record.timers_left = timers_left(loop)
        return record
    finally:
        _end(loop)


def _coroutine(program: Program) -> Coroutine[Any, Any, Any]:
    coroutine: Any = program()
    if not asyncio.iscoroutine(coroutine):
        raise TypeError(f"explore takes an async function without arguments, not {program!r}")
    started: Coroutine[Any, Any, Any] = coroutine
    return started


def recorded(stepper: Stepper, plan: Plan, lateness: float) -> Record:
    """The record of a run that has ended, without its verdict."""
    return Record(
        plan,
        taken=stepper.taken,
        points=stepper.points or [],
        counts=tuple(stepper.counts.items()),
        steps=stepper.steps,
        instants=stepper.instant,
        stall=round(lateness, 9),
        late_timers=stepper.late_timers,
        cancelled=len(stepper.accepted),
    )


def _of_victims(segments: CancelPointObserver, instants: int, loop: SteppedLoop) -> list[Segment]:
    """The ranges of the tasks that may be cancelled.

    That is the program itself, the victims that it marks, or else every task that it has created.
    """
    seen = segments.finish(instants)
    if loop.settings.cancel == "main":
        return [segment for segment in seen if segment.task == 0]
    numbers = set(loop.stepper.victims) or loop.stepper.own - {0}
    return [segment for segment in seen if segment.task in numbers]


def _end(loop: SteppedLoop) -> None:
    """End what the run has left, so that it cannot influence the next one."""
    loop.stepper.cleaning_up = True
    _end_tasks(loop)
    # A task that has gone away by now took its async generators with it, and the loop then
    # scheduled their `aclose()`. These have to run before the loop closes (seen on 3.14).
    if loop._ready:
        loop.settle(limit=_LAST_STEPS, seconds=_FOREVER)


def _end_tasks(loop: SteppedLoop) -> None:
    # More than one round, because a task may catch the first cancel in order to clean up.
    for _ in range(_ROUNDS):
        pending = [task for task in loop.tasks if not task.done()]
        if not pending:
            break
        for task in pending:
            task.cancel()
        loop.settle(limit=_LAST_STEPS, seconds=_FOREVER)
    tasks = list(loop.tasks)
    # Many runs go by before the next collection, and the program may ask for all tasks.
    forget_ended_tasks(tasks)
    for task in tasks:
        if not task.done():
            # It ignores every cancel. asyncio would report it when it is collected, in a later run.
            mute_destroyed_warning(task)
        elif not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it later
