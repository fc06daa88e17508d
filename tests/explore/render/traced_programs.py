"""Three programs with a bug that only some schedules show, each run of which makes a good trace:
a lost update, a deadlock of two locks, and a cancel in the window between the completion of a
future and the resume of its waiter. And the search that finds the schedule.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from handfast._explore.latency import latency
from handfast._explore.search.plan import Cancel, Plan, Record, Settings
from handfast._explore.search.run import Program, run
from handfast._explore.trace.model import Trace
from handfast._explore.trace.tracer import Tracer
from handfast._explore.verdict.verdict import Verdict
from handfast._explore.victim import victim


async def lost_update() -> None:
    account = {"balance": 100}

    async def deposit(amount: int, delay: float) -> None:
        await asyncio.sleep(delay)
        seen = account["balance"]
        await asyncio.sleep(0.01)
        account["balance"] = seen + amount

    await asyncio.gather(deposit(10, 0.01), deposit(5, 0.03))
    assert account["balance"] == 115, f"the balance is {account['balance']}"


async def two_locks() -> None:
    left, right = asyncio.Lock(), asyncio.Lock()

    async def move(first: asyncio.Lock, second: asyncio.Lock, delay: float) -> None:
        await asyncio.sleep(delay)
        async with first:
            await asyncio.sleep(0.01)
            async with second:
                pass

    async with asyncio.TaskGroup() as group:
        group.create_task(move(left, right, 0.01), name="rightwards")
        group.create_task(move(right, left, 0.05), name="leftwards")


async def window() -> None:
    pool = ["connection"]

    async def borrow() -> None:
        loop = asyncio.get_running_loop()
        handed: asyncio.Future[str] = loop.create_future()

        def hand_over() -> None:
            handed.set_result(pool.pop())

        timer = loop.call_later(0.01, hand_over)
        try:
            connection = await handed
        finally:
            timer.cancel()
        try:
            await asyncio.sleep(0.01)
        finally:
            pool.append(connection)

    await victim(borrow(), name="borrower")
    assert pool, "the connection is lost"


def crowd(tasks: int, turns: int) -> Program:
    """Many tasks that take many turns, and no bug: a long trace."""

    async def program() -> None:
        async def work() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            for _ in range(tasks):
                group.create_task(work())
            await asyncio.sleep(0.02)

    return program


def answered_crowd(tasks: int, turns: int) -> Program:
    """Many tasks that wait for many answers from outside: a choice at almost every step."""

    async def program() -> None:
        async def work() -> None:
            for _ in range(turns):
                await latency()

        await asyncio.gather(*(work() for _ in range(tasks)))

    return program


STRICT = Settings()
CANCELS = Settings(cancel="tasks")
EXAMPLES: dict[str, tuple[Program, Settings]] = {
    "lost_update": (lost_update, STRICT),
    "two_locks": (two_locks, STRICT),
    "window": (window, CANCELS),
}


def example_trace(name: str) -> tuple[Trace, Verdict]:
    """The trace of the first failing schedule of a tale, and its verdict."""
    program, settings = EXAMPLES[name]
    trace, verdict = traced(program, failing(program, settings), settings)
    assert verdict is not None
    return trace, verdict


def traced(
    program: Program, plan: Plan | None = None, settings: Settings = STRICT
) -> tuple[Trace, Verdict | None]:
    """One run with a tracer, and one without: they must come to the same verdict."""
    plan = plan or Plan()
    tracer = Tracer()
    seen = run(program, plan, settings, observer=tracer)
    assert seen.verdict == run(program, plan, settings).verdict
    return tracer.trace(), seen.verdict


def failing(program: Program, settings: Settings, *, most: int = 500) -> Plan:
    """The first plan that fails, those with few departures first."""
    todo = deque([Plan(observe=True)])
    for _ in range(most):
        plan = todo.popleft()
        record = run(program, plan, settings)
        if record.verdict is not None:
            return plan
        todo.extend(_further(plan, record))
    raise AssertionError(f"no schedule out of {most} fails")


def _further(plan: Plan, record: Record) -> Iterator[Plan]:
    beyond = max((ordinal for ordinal, _ in plan.choices), default=-1) + 1
    for ordinal in range(beyond, len(record.points)):
        for value in range(1, record.points[ordinal].options):
            choices = (*plan.choices, (ordinal, value))
            yield Plan(choices=choices, cancels=plan.cancels, observe=True)
    if not plan.cancels:
        for segment in record.segments:
            cancels = (Cancel(segment.first, segment.task),)
            yield Plan(choices=plan.choices, cancels=cancels, observe=True)
