"""HF602: which failure a cancel hides."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf602_cancel_hides_error import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF602").code
    assert not RULE.pedantic
    assert lines(kind("HF602").wrong) == [10]
    assert lines(kind("HF602").right) == []


@pytest.mark.parametrize(
    "join",
    [
        "done, _ = await asyncio.wait(self._tasks)",
        "await asyncio.gather(*self._tasks, return_exceptions=True)",
        "await asyncio.wait(self._tasks); [task.result() for task in self._tasks]",
    ],
)
def test_tasks_that_are_looked_at_are_left_alone(join: str) -> None:
    source = kind("HF602").wrong.replace("await asyncio.wait(self._tasks)", join)
    assert findings(source) == []


def test_a_class_with_an_unknown_base_may_look_elsewhere() -> None:
    assert findings(kind("HF602").wrong.replace("class Jobs", "class Jobs(Unknown)")) == []


def test_a_single_task_is_found_with_pedantic() -> None:
    source = """\
import asyncio
class Job:
    def start(self, job):
        self._task = asyncio.create_task(job())
    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
"""
    assert lines(source) == []
    assert [each.place.line for each in findings(source)] == [6]


def test_tasks_that_are_added_one_by_one_are_many() -> None:
    source = """\
import asyncio
class Jobs:
    def __init__(self):
        self._tasks = set()
    def start(self, job):
        self._tasks.add(asyncio.create_task(job()))
    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
"""
    assert lines(source) == [9]
