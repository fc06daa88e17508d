"""Random programs of nested groups, run with `Scope` and with `asyncio.TaskGroup`.

The two promise the same here: every error that a child or the body raises is raised once, by
identity; children have ended when the block ends; a cancel of the task around it is not lost. A
program counts steps of the loop, so it has no clock.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import handfast
from tests.support.stepping import new_loop

Group = Callable[[], Any]
GROUPS: dict[str, Group] = {"Scope": handfast.Scope, "TaskGroup": asyncio.TaskGroup}


@dataclass(frozen=True)
class Part:
    """What one task does: it waits, starts others in a group of its own, waits, and ends."""

    before: int
    children: tuple[Part, ...]
    after: int
    fails: bool
    clean_up: int
    clean_up_fails: bool


@dataclass(frozen=True)
class Plan:
    """A program, and the step at which the task around it is cancelled."""

    part: Part
    cancel_at: int | None


def random_part(chance: random.Random, depth: int) -> Part:
    children = chance.choice((0, 1, 2, 3)) if depth else 0
    return Part(
        before=chance.randrange(4),
        children=tuple(random_part(chance, depth - 1) for _ in range(children)),
        after=chance.randrange(4),
        fails=chance.random() < 0.25,
        clean_up=chance.randrange(3),
        clean_up_fails=chance.random() < 0.1,
    )


def random_plan(seed: int) -> Plan:
    chance = random.Random(seed)
    part = random_part(chance, chance.choice((1, 2, 2, 3)))
    return Plan(part, chance.randrange(16) if chance.random() < 0.6 else None)


@dataclass
class Run:
    """What happened in one run of a plan."""

    group: Group
    raised: list[Exception] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    in_block: bool = False
    cancelled_in_block: bool = False
    alive_after_block: int = 0
    outcome: BaseException | None = None
    cancelled_after_block: bool = False

    def problems(self) -> list[str]:
        found = []
        leaves = leaves_of(self.outcome)
        if sorted(map(id, leaves)) != sorted(map(id, self.raised)):
            found.append(f"raised {self.raised}, got {leaves}")
        if self.alive_after_block:
            found.append(f"{self.alive_after_block} tasks outlive the block")
        cancelled = isinstance(self.outcome, asyncio.CancelledError) or self.cancelled_after_block
        if cancelled != self.cancelled_in_block:
            found.append(f"cancelled: {self.cancelled_in_block}, seen: {cancelled}")
        return found


def leaves_of(error: BaseException | None) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in leaves_of(each)]
    return [] if error is None or isinstance(error, asyncio.CancelledError) else [error]


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def start(group: Any, coro: Any) -> asyncio.Task[Any]:
    spawn = group.create_task if isinstance(group, asyncio.TaskGroup) else group.spawn
    task: asyncio.Task[Any] = spawn(coro)
    return task


async def perform(part: Part, run: Run, name: str) -> None:
    def fail(what: str) -> None:
        error = ValueError(f"{what} of {name}")
        run.raised.append(error)
        raise error

    await steps(part.before)
    async with run.group() as group:
        for number, child in enumerate(part.children):
            try:
                run.tasks.append(start(group, perform(child, run, f"{name}.{number}")))
            except RuntimeError:  # an eager child has failed, and the group refuses more
                break
        try:
            await steps(part.after)
        finally:
            await steps(part.clean_up)
            if part.clean_up_fails:
                fail("clean-up")
        if part.fails:
            fail("end")


async def run_plan(plan: Plan, run: Run) -> None:
    async def host() -> None:
        run.in_block = True
        try:
            await perform(plan.part, run, "0")
        except BaseException as error:
            run.outcome = error
        run.in_block = False
        run.alive_after_block = sum(not task.done() for task in run.tasks)
        try:
            await steps(3)
        except asyncio.CancelledError:
            run.cancelled_after_block = True

    task = asyncio.get_running_loop().create_task(host())
    if plan.cancel_at is not None:
        await steps(plan.cancel_at)
        if run.in_block:
            run.cancelled_in_block = task.cancel()
    await asyncio.wait({task})


def run_with(group: str, plan: Plan, kind: str) -> Run:
    """Run a plan with "Scope" or "TaskGroup", on one kind of loop."""
    run = Run(GROUPS[group])
    with asyncio.Runner(loop_factory=lambda: new_loop(kind)) as runner:
        runner.get_loop().set_exception_handler(lambda _loop, _context: None)
        runner.run(run_plan(plan, run))
    return run
