"""HF412: which close method loses tasks that are added late."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf412_snapshot_misses_latecomers import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF412").code
    assert not RULE.pedantic
    assert lines(kind("HF412").wrong) == [19]
    assert findings(kind("HF412").right) == []


JOBS = """\
import asyncio
class Jobs:
    def __init__(self):
        self.tasks = set()
        self.closing = False
    def submit(self, job):
        self.tasks.add(asyncio.create_task(job()))
    async def close(self):
        tasks = list(self.tasks)
        await asyncio.gather(*tasks)
        self.tasks.clear()
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("", "", 11),
        ("self.tasks.clear()", "self.tasks = set()", 11),
        ("self.tasks.clear()", "self.tasks -= set(tasks)", 11),
        ("self.tasks.clear()", "self.tasks.difference_update(tasks)", 11),
        ("gather(*tasks)", "gather(*self.tasks)", 11),
        ("list(self.tasks)", "self.tasks.copy()", 11),
    ],
)
def test_what_comes_between_snapshot_and_clearing_is_forgotten(
    old: str, new: str, line: int
) -> None:
    assert lines(JOBS.replace(old, new, 1)) == [line]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("await asyncio.gather(*tasks)", "pass"),
        ("tasks = list(self.tasks)", "tasks = list(self.tasks); self.tasks.clear(); return"),
        (
            "tasks = list(self.tasks)",
            "while self.tasks: await asyncio.wait(self.tasks)\n        tasks = ()",
        ),
        ("def submit(self, job)", "def start(self)"),
        ("self.tasks.add(", "if self.closing: return\n        self.tasks.add("),
        ("async def close", "async def flush"),
    ],
)
def test_a_close_that_loses_no_task_is_not_reported(old: str, new: str) -> None:
    assert findings(JOBS.replace(old, new, 1)) == []


@pytest.mark.parametrize("lock", ["", "        with self.lock:\n            "])
def test_the_reported_bridge_is_found_with_and_without_the_reported_lock(lock: str) -> None:
    source = f"""\
import asyncio
class Bridge:
    def __init__(self):
        self.active = set()
    def submit(self, message):
        task = asyncio.ensure_future(graph(message), loop=self.loop)
{lock or "        "}self.active.add(task)
        task.add_done_callback(self.active.discard)
    async def cleanup_tasks_async(self):
        tasks = list(self.active)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        late = self.active - set(tasks)
{lock or "        "}self.active.clear()
"""
    assert len(lines(source)) == 1


def test_a_flag_that_the_callers_ask_for_keeps_latecomers_out() -> None:
    source = JOBS.replace("def submit", "def _add") + (
        "    def submit(self, job):\n        self._raise_if_closed()\n        self._add(job)\n"
    )
    assert findings(source) == []
    assert len(lines(source.replace("self._raise_if_closed()", "pass"))) == 1
