"""Which tasks a wait for the first loses, and which other code can still reach."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.first_completed import lost_tasks
from handfast._check.source import parse

RACE = """\
import asyncio
async def race(queue, stop):
    getting = asyncio.create_task(queue.get())
    stopping = asyncio.create_task(stop.wait())
    both = {getting, stopping}
    done, _ = await asyncio.wait(both, return_when="FIRST_COMPLETED")
    return getting in done
"""


def lost(source: str) -> list[int]:
    module = Module(parse("x.py", source.encode()), "x")
    return [race.lost.lineno for function in module.functions for race in lost_tasks(function)]


def test_racers_in_a_set_of_their_own_are_lost_with_it() -> None:
    assert lost(RACE) == [3]
    inline = RACE.replace("    both = {getting, stopping}\n", "")
    assert lost(inline.replace("(both", "({getting, stopping}")) == [3]


def test_tasks_that_are_not_done_at_a_timeout_are_lost() -> None:
    assert lost(RACE.replace('return_when="FIRST_COMPLETED"', "timeout=5")) == [3]


def test_tasks_of_a_comprehension_are_lost_with_it() -> None:
    made = "[asyncio.create_task(queue.get()) for _ in range(3)]"
    source = RACE.replace("{getting, stopping}", made)
    assert lost(source) == [5]
    assert lost(source + "    print(both)\n") == []
    assert lost(source.replace("asyncio.create_task(queue.get())", "queue.task")) == []
    inline = source.replace(f"    both = {made}\n", "").replace("(both", f"({made}")
    assert lost(inline) == [5]
    assert lost(inline.replace('return_when="FIRST_COMPLETED"', "timeout=None")) == []


def test_racers_that_another_container_holds_are_left_alone() -> None:
    held = "    self.racers = [getting, stopping]\n    both ="
    assert lost(RACE.replace("    both =", held)) == []
    assert lost(RACE + "    print(both)\n") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("asyncio.create_task(queue.get())", "queue.task"),
        ("asyncio.create_task(queue.get())", "start(queue.get())"),
        ('return_when="FIRST_COMPLETED"', "timeout=None"),
        ('return_when="FIRST_COMPLETED"', "timeout=limit"),
        ('return_when="FIRST_COMPLETED"', 'return_when="ALL_COMPLETED"'),
        ("done, _ = await asyncio.wait", "done, _ = yield asyncio.wait"),
        ("done, _ = await", "both = await"),
    ],
)
def test_a_wait_for_tasks_that_others_hold_is_not_reported(old: str, new: str) -> None:
    source = RACE.replace("    both = {getting, stopping}\n", "")
    source = source.replace("(both", "({getting, stopping.task}")
    assert old in source
    assert lost(source.replace(old, new)) == []


@pytest.mark.parametrize("given", ["[queue.get(), queue.read()]", "(queue.get(), stop.wait())"])
def test_coroutines_that_only_the_wait_knows_are_lost(given: str) -> None:
    source = f"import asyncio\nasync def race(queue, stop):\n    both = {given}\n"
    source += "    await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)\n"
    assert lost(source) == [3]
    assert lost(source + "    await both[0]\n") == []
    assert lost(source.replace(given, "[queue.next(), stop.next()]")) == []
    assert lost(source.replace(given, "make(queue)")) == []
    assert lost(source.replace(given, "[queue.get()]")) == []


def test_a_coroutine_function_of_the_file_gives_a_coroutine_and_a_plain_one_does_not() -> None:
    source = """\
import asyncio
async def race(queue):
    await asyncio.wait([read(queue), queue.task], return_when=asyncio.FIRST_COMPLETED)
async def read(queue):
    await queue.read()
"""
    assert lost(source) == [3]
    assert (
        lost(source.replace("async def read", "def read").replace("await queue", "return queue"))
        == []
    )
