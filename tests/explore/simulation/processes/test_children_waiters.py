"""MultiProcess tasks that wait for one child: in which order they are woken."""

from __future__ import annotations

import asyncio
import sys
from itertools import permutations

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.processes.script import Exits, Waits, child
from tests.explore.all_schedules import schedules

# Since 3.14 asyncio keeps the waiters in a set, whose order is that of addresses (gh-119710).
IN_A_SET = sys.version_info >= (3, 14)
_log: list[str] = []


async def three_wait() -> None:
    _log.clear()
    child("x", Waits(1), Exits(3))
    process = await asyncio.create_subprocess_exec("x")

    async def one(name: str) -> None:
        assert await process.wait() == 3
        _log.append(name)

    await asyncio.gather(one("a"), one("b"), one("c"))


def test_those_who_wait_for_an_exit_are_woken_in_any_order_where_asyncio_has_a_set() -> None:
    seen = set()
    for record in schedules(three_wait, Settings(stall=0)):
        assert record.verdict is None, record.verdict
        seen.add("".join(_log))
    orders = {"".join(each) for each in permutations("abc")}
    assert seen == (orders if IN_A_SET else {"abc"})


def test_the_plain_order_is_that_of_the_calls_in_every_run() -> None:
    seen = set()
    for _ in range(50):
        run(three_wait, Plan(), Settings(stall=0))
        seen.add("".join(_log))
    assert seen == {"abc"}
