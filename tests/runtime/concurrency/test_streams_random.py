"""Random programs with `stream`, `merge` and `Scope.map`, compared with plain loops over lists.

HANDFAST_RANDOM_PROGRAMS=5000 runs so many, HANDFAST_RANDOM_SEED=7 from that seed on. A failure
names the seed and the plan.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator
from typing import NamedTuple

import pytest

import handfast
from handfast.types import Stream
from tests.support.stepping import Stepping, run_stepping

COUNT = int(os.environ.get("HANDFAST_RANDOM_PROGRAMS", "300"))
SEED = int(os.environ.get("HANDFAST_RANDOM_SEED", "1"))
KINDS = ("stream", "merge", "map", "map as completed")


class Broken(Exception):
    """The error of an item."""


class Plan(NamedTuple):
    sources: tuple[tuple[int, ...], ...]
    failing: int | None  # the item that is an error
    seconds: tuple[float, ...]  # how long items, calls and clean-ups take
    limit: int
    take: int  # items until the consumer leaves
    pause: float
    cancel_at: int | None


def random_plan(kind: str, seed: int) -> Plan:
    dice = random.Random(seed)
    sizes = [dice.randrange(7) for _ in range(dice.randrange(1, 4) if kind == "merge" else 1)]
    total = sum(sizes)
    numbers = iter(range(total))
    return Plan(
        tuple(tuple(next(numbers) for _ in range(size)) for size in sizes),
        dice.randrange(total) if total and dice.random() < 0.4 else None,
        tuple(dice.choice((0.0, 0.5, 1.0, 2.5)) for _ in range(7)),
        dice.randrange(1, 4),
        dice.choice((0, 1, 3, 99, 99)),
        dice.choice((0.0, 0.0, 1.0)),
        dice.randrange(60) if dice.random() < 0.3 else None,
    )


class Run:
    """One run of a plan: what the consumer got, and what is still open."""

    def __init__(self, kind: str, plan: Plan) -> None:
        self.kind = kind
        self.plan = plan
        self.got: list[int] = []
        self.error: Broken | None = None
        self.open = 0
        self.taken = 0

    async def wait(self, n: int) -> None:
        await asyncio.sleep(self.plan.seconds[n % 7])

    async def items(self, numbers: tuple[int, ...]) -> AsyncGenerator[int, None]:
        self.open += 1
        try:
            for n in numbers:
                await self.wait(n)
                self.taken += 1
                if n == self.plan.failing and not self.kind.startswith("map"):
                    raise Broken(n)
                yield n
        finally:
            try:
                await self.wait(3)
            finally:
                self.open -= 1

    async def call(self, n: int) -> int:
        self.open += 1
        try:
            await self.wait(n + 2)
            if n == self.plan.failing:
                raise Broken(n)
            return n
        finally:
            self.open -= 1

    def opened(self, scope: handfast.Scope) -> Stream[int]:
        sources = [self.items(numbers) for numbers in self.plan.sources]
        if self.kind == "merge":
            return handfast.merge(*sources)
        if self.kind == "stream":
            return handfast.stream(sources[0])
        ordered = self.kind == "map"
        return scope.map(self.call, sources[0], limit=self.plan.limit, ordered=ordered)

    async def consume(self) -> None:
        async with handfast.Scope() as scope:
            try:
                async with self.opened(scope) as stream:
                    while len(self.got) < self.plan.take:
                        self.got.append(await anext(stream))
                        await asyncio.sleep(self.plan.pause)
            except StopAsyncIteration:
                pass
            except Broken as error:
                self.error = error
            finally:
                assert self.open == 0, "something is open after the block"

    def check(self, outcome: str) -> None:
        """Compare with plain loops."""
        plan = self.plan
        for numbers in plan.sources:
            mine = [n for n in self.got if n in numbers]
            before = numbers[: numbers.index(plan.failing)] if plan.failing in numbers else numbers
            if self.kind == "map as completed":
                assert set(mine) <= set(numbers) - {plan.failing}
                assert len(mine) == len(set(mine))
            else:
                assert tuple(mine) == before[: len(mine)]
        everything = sum(map(len, plan.sources))
        if outcome == "finished" and plan.failing is None:
            assert len(self.got) == min(plan.take, everything)
        elif outcome == "finished":
            assert len(self.got) == plan.take
        elif outcome == "failed":
            assert plan.failing is not None
        else:
            assert plan.cancel_at is not None
        ahead = {"stream": 1, "merge": len(plan.sources)}.get(self.kind, 2 * plan.limit + 1)
        assert self.taken <= len(self.got) + ahead


def run_plan(kind: str, plan: Plan) -> None:
    async def program(stepping: Stepping) -> None:
        run = Run(kind, plan)
        task = stepping.victim(asyncio.create_task(run.consume()))
        await asyncio.wait({task})
        assert task.cancelled() or task.exception() is None, task.exception()
        run.check("failed" if run.error else "cancelled" if task.cancelled() else "finished")
        if stepping.cancelled:
            assert task.cancelled() or run.error is not None, "the cancel was lost"
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for context in stepping.errors:  # the error of an item that the consumer did not come to
            assert isinstance(context.get("exception"), Broken), context
            assert context["exception"] is not run.error
        stepping.errors.clear()

    run_stepping(program, cancel_at=plan.cancel_at)


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_get_what_plain_loops_get(kind: str) -> None:
    """S3.1, S3.3, S3.6, A16."""
    for seed in range(SEED, SEED + COUNT):
        plan = random_plan(kind, seed)
        try:
            run_plan(kind, plan)
        except BaseException as error:
            error.add_note(f"HANDFAST_RANDOM_SEED={seed} HANDFAST_RANDOM_PROGRAMS=1: {plan}")
            raise
