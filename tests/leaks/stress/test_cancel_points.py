"""A run is cancelled at the step that was drawn for it, and the same seed draws the same steps."""

from __future__ import annotations

import asyncio

import pytest

from handfast._await_stack import await_chain
from handfast._leaks.stress.cancel_points import CancelPoint, CancelPointSampler, Run


async def steps(seen: list[int], count: int = 4) -> str:
    for step in range(count):
        seen.append(step)
        await asyncio.sleep(0)
    return "finished"


async def cancelled_at(point: CancelPoint | None) -> tuple[Run, list[int]]:
    seen: list[int] = []
    run = Run(asyncio.get_running_loop(), steps(seen), 1, point)
    assert await run.ended(60)
    return run, seen


@pytest.mark.parametrize("step", [0, 1, 2, 4])
def test_the_cancel_comes_at_the_step_that_was_drawn(step: int) -> None:
    run, seen = asyncio.run(cancelled_at(CancelPoint(step)))
    assert run.was_cancelled
    assert run.task.cancelled()
    assert run.cancelled_at == CancelPoint(step)
    assert seen == list(range(step))


def test_the_cancel_comes_some_turns_later() -> None:
    run, seen = asyncio.run(cancelled_at(CancelPoint(1, turns=2)))
    assert run.task.cancelled()
    assert len(seen) == 3


@pytest.mark.parametrize("point", [None, CancelPoint(9), CancelPoint(4, turns=3)])
def test_a_run_that_ends_before_its_cancel_is_left_alone(point: CancelPoint | None) -> None:
    run, _ = asyncio.run(cancelled_at(point))
    assert run.task.result() == "finished"
    assert (run.was_cancelled, run.cancelled_at, run.steps) == (False, None, 4)


def test_a_run_waits_where_the_program_waits() -> None:
    async def main() -> tuple[str, ...]:
        run = Run(asyncio.get_running_loop(), steps([]), 1)
        await asyncio.sleep(0)
        stands = await_chain(run.task)
        assert await run.ended(60)
        return stands

    (line,) = asyncio.run(main())
    assert line.endswith(" in steps")


def test_errors_pass_through_the_step_counter() -> None:
    async def timed() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            await asyncio.sleep(0)
        return "finished"

    async def main() -> str:
        run = Run(asyncio.get_running_loop(), timed(), 1)
        assert await run.ended(60)
        result: str = run.task.result()
        return result

    assert asyncio.run(main()) == "finished"


def drawn(seed: int, known: int = 7) -> list[CancelPoint | None]:
    lots = CancelPointSampler(seed)
    lots.learn(known)
    return [lots.draw(number) for number in range(400)]


def test_the_same_seed_draws_the_same_points() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_every_step_is_drawn_and_some_runs_are_left_alone() -> None:
    points = drawn(0)
    assert {point.step for point in points if point} == set(range(8))
    assert 10 < points.count(None) < 100
    assert {point.step for point in drawn(0, known=0) if point} == {0}


def test_more_steps_are_learned_and_never_forgotten() -> None:
    lots = CancelPointSampler(0)
    for known in (3, 5, 2):
        lots.learn(known)
    assert lots.steps == 5
