"""The order of closing, decided on its own: all small layouts against the rule as it is said."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from handfast._runtime.scope.shutdown_order import Member, waves
from tests.support.stepping import Stepping, run_stepping

LAYOUTS = ["".join(kinds) for n in range(1, 6) for kinds in itertools.product("trd", repeat=n)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tasks_go_first_and_then_resources_one_by_one_the_newest_first(layout: str) -> None:
    """S4.3. `t` is a task, `r` a resource, `d` a task that has ended; the oldest is the first."""

    async def program(_: Stepping) -> list[list[object]]:
        tasks = [asyncio.create_task(asyncio.sleep(0 if kind == "d" else 9)) for kind in layout]
        await asyncio.sleep(1)
        members = [Member(number, task, None, None) for number, task in enumerate(tasks)]
        held = {number for number, kind in enumerate(layout) if kind == "r"}
        order = [[member.key for member in wave] for wave in waves(members, held)]
        await asyncio.wait(tasks)
        return order

    tasks = [number for number, kind in enumerate(layout) if kind == "t"]
    resources = [[number] for number, kind in enumerate(layout) if kind == "r"]
    assert run_stepping(program) == [tasks, *reversed(resources)]
