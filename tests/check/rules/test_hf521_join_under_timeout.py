"""HF521: which timeout around a task does not limit its duration."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf521_join_under_timeout import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF521").code
    assert lines(kind("HF521").wrong) == [11]
    assert [each.place.line for each in findings(kind("HF521").wrong)[0].related] == [7, 10]
    assert findings(kind("HF521").right) == []


def closing(join: str, handler: str = "pass") -> str:
    return f"""\
import asyncio

class Service:
    def start(self):
        self._task = asyncio.create_task(self.serve())

    async def close(self):
        try:
            {join}
        except asyncio.TimeoutError:
            {handler}

    async def serve(self):
        await self.work()
"""


@pytest.mark.parametrize(
    ("join", "line"),
    [
        ("await asyncio.wait_for(self._task, 5)", 9),
        ("await asyncio.wait_for(self._task, timeout=5)", 9),
        ("async with asyncio.timeout(5):\n                await self._task", 10),
    ],
)
def test_a_task_that_is_taken_for_running_after_the_time_out_is_found(join: str, line: int) -> None:
    source = closing(join, "self._task.cancel()")
    (finding,) = findings(source)
    # The second cancel does nothing: that alone is rarely a bug.
    assert (finding.place.line, finding.pedantic) == (line, True)
    assert [each.place.line for each in finding.related] == [5, line + 2]
    takes_it = """\
        while True:
            try:
                await self.work()
            except BaseException:
                pass"""
    assert lines(source.replace("        await self.work()", takes_it)) == [line]


def test_a_loop_that_waits_for_it_again_is_found() -> None:
    source = """\
import asyncio

async def run(work):
    task = asyncio.create_task(work())
    while not task.done():
        try:
            await asyncio.wait_for(task, 1)
        except asyncio.TimeoutError:
            print("still running")
"""
    assert lines(source) == [7]


def test_a_task_that_takes_its_cancellation_is_found() -> None:
    source = closing("await asyncio.wait_for(self._task, 5)").replace(
        "        await self.work()",
        """\
        while True:
            try:
                await self.work()
            except BaseException:
                pass""",
    )
    assert lines(source) == [9]


def test_a_bound_without_more_is_a_matter_of_taste() -> None:
    source = closing("await asyncio.wait_for(self._task, 5)")
    assert lines(source) == []
    assert pedantic(source) == [9]


@pytest.mark.parametrize(
    "join",
    [
        "await asyncio.wait_for(asyncio.shield(self._task), 5)",
        "await asyncio.wait({self._task}, timeout=5)",
        "await asyncio.wait_for(self.other, 5)",
        "await asyncio.wait_for(self.serve(), 5)",
        "await asyncio.wait_for(self._task, None)",
        "await self._task",
    ],
)
def test_shielded_unbounded_or_no_task_is_silent(join: str) -> None:
    assert findings(closing(join, "self._task.cancel()")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        self._stop.set()\n", ""),
        ("async def close", "async def ask"),
        (
            "        await asyncio.wait_for(self._task, timeout=5)",
            "        try:\n            await asyncio.wait_for(self._task, timeout=5)\n"
            "        except TimeoutError:\n            self._late = True",
        ),
    ],
)
def test_a_wait_that_promises_nothing_is_a_matter_of_taste(old: str, new: str) -> None:
    source = kind("HF521").wrong.replace(old, new)
    assert source != kind("HF521").wrong
    assert lines(source) == []
    assert len(pedantic(source)) == 1


def test_a_timeout_that_the_project_reexports_is_one() -> None:
    source = closing("async with asyncio_timeout(5):\n                await self._task")
    assert findings(source) == []
    imported = "from .compatibility import asyncio_timeout\n" + source
    assert pedantic(imported) == [11]
