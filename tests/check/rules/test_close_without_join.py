"""HF303: a close method that cancels and does not wait."""

from __future__ import annotations

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.close_without_join import RULE
from holdfast.check.source import parse


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF303").code
    assert lines(kind("HF303").wrong) == [14]
    assert not findings(kind("HF303").right)


AGENT = """\
import asyncio

class Agent:
    async def start(self):
        self._proc = await asyncio.create_subprocess_exec("agent")
        self._drain_task = asyncio.create_task(self._drain())

    async def _drain(self):
        try:
            while self._proc:
                await self._proc.stderr.readline()
        finally:
            self._over.set()

    async def kill(self):
        {kill}

    def _cancel_drain(self):
        if self._drain_task:
            self._drain_task.cancel()
            self._drain_task = None
"""
END = "self._proc.terminate(); await self._proc.wait(); self._proc = None"


def agent(*kill: str) -> str:
    return AGENT.format(kill="\n        ".join(kill))


def test_the_second_report_as_reported_and_as_it_would_be_mended() -> None:
    reported = findings(agent(END, "self._cancel_drain()"))
    assert [each.place.line for each in reported] == [21]
    assert "`Agent.kill`" in reported[0].message
    assert "line 6" in reported[0].message
    assert lines(agent("self._cancel_drain()", END)) == [21]


def test_the_cancel_loop_of_the_fifth_report_is_found() -> None:
    assert lines("""\
import asyncio

class Automator:
    def __init__(self):
        self.background_tasks = set()

    def prefetch(self, tasks):
        task = asyncio.create_task(asyncio.gather(*tasks, return_exceptions=True))
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)

    async def cleanup(self):
        for task in self.background_tasks:
            if not task.done():
                task.cancel()
""") == [15]


JOINS = [
    "task = self._drain_task; task.cancel(); await task",
    "task, self._drain_task = self._drain_task, None; task.cancel(); await asyncio.wait({task})",
    "self._drain_task.cancel(); await asyncio.gather(self._drain_task, return_exceptions=True)",
    "self._drain_task.cancel(); await self.ended(self._drain_task)",
    "self._drain_task.cancel(); await self._over.wait()",
    "self._drain_task.cancel(); left.append(self._drain_task); await asyncio.wait(left)",
    "self._drain_task.cancel(); return self._drain_task",
]


def test_a_join_has_many_faces() -> None:
    for join in JOINS:
        assert not findings(agent(join)), join


def test_a_close_method_that_is_no_coroutine_is_pedantic() -> None:
    source = agent("self._cancel_drain()").replace("async def kill", "def kill")
    assert not lines(source)
    assert pedantic(source) == [20]


def test_silent_where_a_base_class_is_not_known() -> None:
    source = agent("self._cancel_drain()").replace("class Agent", "class Agent(Elsewhere)")
    assert not findings(source)


def test_silent_where_a_part_is_ended_by_its_key() -> None:
    assert not findings("""\
import asyncio

class Timers:
    def start(self, key):
        self._tasks[key] = asyncio.create_task(work())

    async def stop(self, key):
        self._tasks[key].cancel()
""")
