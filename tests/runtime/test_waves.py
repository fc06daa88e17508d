"""The order of closing, decided on its own: all small ladders against the rule as it is said."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from holdfast.runtime.waves import Member, next_wave
from tests.stepping import Stepping, run_stepping

LAYOUTS = ["".join(kinds) for n in range(1, 6) for kinds in itertools.product("tr", repeat=n)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_later_things_go_first_and_resources_one_at_a_time(layout: str) -> None:
    """`t` is a task, `r` a resource; the oldest stands first."""

    async def program(_: Stepping) -> list[list[str]]:
        futures = [asyncio.get_running_loop().create_future() for _ in layout]

        async def until(future: asyncio.Future[None]) -> None:
            await future

        members = []
        for position, future in enumerate(futures):
            task = asyncio.create_task(until(future))
            members.append(Member(f"{layout[position]}{position}", task, None, None))
        held = {member.key for member in members if str(member.key).startswith("r")}
        ladder, waves = list(members), []
        while wave := next_wave(ladder, held, {}):
            waves.append([str(member.key) for member in wave])
            for member in wave:
                futures[members.index(member)].set_result(None)
            await asyncio.wait({member.task for member in wave})
        assert ladder == []
        return waves

    expected = [
        [f"{kind}{position}" for position, kind in reversed(list(group))]
        for is_resource, group in itertools.groupby(
            reversed(list(enumerate(layout))), key=lambda item: item[1] == "r"
        )
    ]
    flat: list[list[str]] = []
    for group in expected:
        # Resources that stand side by side go one after the other, the newest first.
        flat += [[key] for key in reversed(group)] if group[0].startswith("r") else [group]
    assert run_stepping(program) == flat


def test_a_chain_of_consumers_goes_from_its_end() -> None:
    async def program(_: Stepping) -> list[list[object]]:
        tasks = [asyncio.create_task(asyncio.sleep(n + 100)) for n in range(3)]
        ladder = [Member(n, task, None, None) for n, task in enumerate(tasks)]
        uses: dict[object, tuple[object, ...]] = {1: (tasks[0],), 2: (tasks[1],)}
        waves = []
        while wave := next_wave(ladder, (), uses):
            waves.append([member.key for member in wave])
            for member in wave:
                member.task.cancel()
            await asyncio.wait({member.task for member in wave})
        return waves

    assert run_stepping(program) == [[2], [1], [0]]
