"""HF121: `create_task` takes coroutines, and a future is none."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf121_gather_as_task import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF121").code
    assert not RULE.pedantic
    assert lines(kind("HF121").wrong) == [11]
    assert lines(kind("HF121").right) == []


BODY = "import asyncio\nasync def go(self, loop, given):\n    {line}\n"


@pytest.mark.parametrize(
    "line",
    [
        "t = asyncio.create_task(asyncio.gather(a(), b()))",
        "t = loop.create_task(asyncio.gather(*jobs, return_exceptions=True))",
        "t = asyncio.get_running_loop().create_task(asyncio.gather(*jobs))",
        "t = asyncio.create_task(asyncio.shield(a()))",
        "t = asyncio.create_task(loop.run_in_executor(None, f))",
        "t = asyncio.create_task(asyncio.create_task(a()))",
        "t = asyncio.create_task(asyncio.ensure_future(a()))",
    ],
)
def test_a_future_given_to_create_task_is_found(line: str) -> None:
    assert lines(BODY.format(line=line)) == [3]


def test_a_future_in_a_local_name_is_found_with_the_place_where_it_is_made() -> None:
    source = """\
import asyncio
def go(self, rows):
    bundle: Any = asyncio.gather(*map(self.fetch, rows))
    self.started.append(asyncio.create_task(bundle))
"""
    (finding,) = findings(source)
    assert finding.place.line == 4
    assert finding.related[0].place.line == 3


def test_a_future_given_to_a_task_group_is_found() -> None:
    source = """\
import asyncio
async def go():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.gather(a(), b()))
"""
    assert lines(source) == [4]


@pytest.mark.parametrize(
    "line",
    [
        "t = asyncio.ensure_future(asyncio.gather(a(), b()))",
        "t = asyncio.create_task(asyncio.wait([x]))",
        "t = asyncio.create_task(asyncio.wait_for(a(), 1))",
        "t = asyncio.create_task(a())",
        "t = asyncio.create_task(given)",
        "t = asyncio.create_task()",
        "t = asyncio.create_task(pool.run_in_executor(None, f))",
        "t = asyncio.create_task(jobs[0])",
        "t = self.create_task(asyncio.gather(a()))",
        "t = create_task(asyncio.gather(a()))",
    ],
)
def test_what_is_or_may_be_a_coroutine_is_not_reported(line: str) -> None:
    assert lines(BODY.format(line=line)) == []


def test_a_name_that_may_also_hold_a_coroutine_is_not_reported() -> None:
    source = """\
import asyncio
def go(many):
    work = asyncio.gather(a(), b())
    if not many:
        work = a()
    return asyncio.create_task(work)
"""
    assert lines(source) == []


def test_seed_004_as_the_report_would_fix_it_is_found() -> None:
    source = """\
import asyncio
class Automator:
    def __init__(self):
        self.background_tasks = set()
    def start(self, prefetch_tasks):
        task = asyncio.create_task(asyncio.gather(*prefetch_tasks, return_exceptions=True))
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)
"""
    assert lines(source) == [6]
