"""What a report reads out of the frame of a tracking coroutine: the origin and the start time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import handfast
from handfast._origin import Origin
from handfast._runtime.keyed_tasks import tracked_by_key
from handfast._runtime.scope.tasks.task_creation import wrapper_of
from handfast._runtime.scope.tasks.task_wrapper import origin_and_start_time, tracked
from handfast._runtime.threads.submit_queue import tracked_submission

WRAPPERS = (tracked, tracked_by_key, tracked_submission)


def an_origin() -> Origin:
    return Origin(an_origin.__code__, 0)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.__name__)
def test_a_float_argument_does_not_become_the_start_time(wrapper: Callable[..., Any]) -> None:
    origin = an_origin()
    names = list(inspect.signature(wrapper).parameters)
    at = next(
        i
        for i, p in enumerate(inspect.signature(wrapper).parameters.values())
        if p.annotation == "Origin"
    )
    values: list[Any] = [float(i) for i in range(len(names))]
    values[at : at + 2] = origin, 99.0
    coroutine = wrapper(*values)
    try:
        assert origin_and_start_time(coroutine) == (origin, 99.0)
    finally:
        coroutine.close()


def test_a_key_whose_key_is_a_float_has_its_own_start_time() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def main() -> tuple[Origin | None, float | None, float]:
        async with handfast.Scope("s") as scope:
            keyed = handfast.KeyedTasks(scope)
            now = asyncio.get_running_loop().time()
            task = keyed.start(1e9, stuck)
            await asyncio.sleep(0)
            origin, start = origin_and_start_time(wrapper_of(task))
            task.cancel()
            return origin, start, now

    origin, start, now = asyncio.run(main())
    assert origin is not None
    assert start is not None
    assert now <= start < now + 60


def test_a_float_of_the_program_is_no_start_time() -> None:
    """A task without a scope has no origin, so that nothing is known of its age."""

    async def own(delay: float) -> None:
        await asyncio.sleep(delay)

    async def main() -> tuple[Origin | None, float | None]:
        task = asyncio.create_task(own(3600.0))
        await asyncio.sleep(0)
        known = origin_and_start_time(task.get_coro())
        task.cancel()
        return known

    assert asyncio.run(main()) == (None, None)
