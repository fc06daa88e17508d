"""One run: a program, a plan, and what came of it.

The program gets a new loop and a new context, and leaves nothing behind: whatever it has left
over is ended here, after the verdict.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.explore.deciders import Diverged, decider
from holdfast.explore.loop import ExploredLoop
from holdfast.explore.plan import Plan, Record, Segment, Settings
from holdfast.explore.real import RealLoop
from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.segments import Segments
from holdfast.explore.stepping import Aborted, Decider, Observer
from holdfast.explore.stock import StockLoop
from holdfast.explore.verdicts import judge, timers_left

__all__ = ["Program", "run"]

Loop = ExploredLoop | RealLoop | StockLoop
Program = Callable[[], Coroutine[Any, Any, Any]]
# How often what is left over is told to end, and how many steps it gets each time.
_ROUNDS = 3
_LAST_STEPS = 1_000
_FOREVER = float("inf")


def run(
    program: Program,
    plan: Plan,
    settings: Settings,
    *,
    invariant: Callable[[], object] | None = None,
    observer: Observer | None = None,
    decides: Decider | None = None,
    loop: Loop | None = None,
) -> Record:
    """Run `program` under `plan`. `observer` looks on; `decides` stands in for the plan's decider,
    `loop` for the loop that the settings ask for."""
    segments = None
    if observer is None and plan.observe and settings.cancel != "no":
        observer = segments = Segments()
    loop = loop or (RealLoop() if settings.real_io else ExploredLoop())
    decides = decides or decider(plan)
    states: list[int | None] = []
    if plan.states:
        from holdfast.explore.states import Remembering  # only the reduced search needs it

        since = plan.choices[-1][0] if plan.choices else -1
        decides = Remembering(decides, loop, since)
        states = decides.states
    loop.prepare(settings, decides, plan.cancels, observer, invariant, points=plan.observe)
    # Whoever calls may be inside a loop of its own, as a test of pytest-asyncio is.
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    random.seed(0)  # a program that draws lots draws the same ones each time
    try:
        record = contextvars.copy_context().run(_drive, loop, program, plan)
        record.states = states
        if segments is not None:
            record.segments = _of_victims(segments, record.instants, loop)
        return record
    finally:
        loop.close()
        asyncio._set_running_loop(outer)


def _drive(loop: Loop, program: Program, plan: Plan) -> Record:
    ended: BaseException | None = None
    main = loop.create_task(_coroutine(program))
    try:
        try:
            loop.run_until_complete(main)
        except (KeyboardInterrupt, SystemExit, Diverged, Uncontrolled):
            raise
        except BaseException as error:
            ended = error
        if loop.uncontrolled is not None:
            raise loop.uncontrolled
        record = _recorded(loop, plan)
        if not isinstance(ended, Aborted):
            loop.settle()
        strict = bool(loop.victims) or loop.settings.cancel == "main"
        record.verdict = judge(loop, main, ended, strict_victims=strict)
        record.timers_left = timers_left(loop)
        return record
    finally:
        _end(loop)


def _coroutine(program: Program) -> Coroutine[Any, Any, Any]:
    coroutine = program()
    if not asyncio.iscoroutine(coroutine):
        raise TypeError(f"explore takes an async function without arguments, not {program!r}")
    return coroutine


def _recorded(loop: Loop, plan: Plan) -> Record:
    return Record(
        plan,
        taken=loop.taken,
        points=loop.points or [],
        steps=loop.steps,
        instants=loop.instant,
        stall=round(loop.lateness, 9),
        cancelled=len(loop.accepted),
    )


def _of_victims(segments: Segments, instants: int, loop: Loop) -> list[Segment]:
    """The stretches of those that may be cancelled: the program itself, the victims that it
    names, or else every task that it has made."""
    seen = segments.finish(instants)
    if loop.settings.cancel == "main":
        return [segment for segment in seen if segment.task == 0]
    numbers = set(loop.victims) or loop.own - {0}
    return [segment for segment in seen if segment.task in numbers]


def _end(loop: Loop) -> None:
    """End what the run has left, so that it cannot disturb the next one."""
    loop.burying = True
    for _ in range(_ROUNDS):
        pending = [task for task in loop.tasks if not task.done()]
        if not pending:
            break
        for task in pending:
            task.cancel()
        loop.settle(limit=_LAST_STEPS, seconds=_FOREVER)
    for task in loop.tasks:
        if not task.done():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        elif not task.cancelled():
            task.exception()  # looked at, so that nobody hears of it later
