"""HF321: the reader of a child's output is cancelled before the child is terminated."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf321_drain_cancelled_first import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF321").code
    assert lines(kind("HF321").wrong) == [15]
    assert not findings(kind("HF321").right)


AGENT = """\
import asyncio

class Agent:
    async def start(self):
        self._proc = await asyncio.create_subprocess_exec("agent")
        self._drain_task = asyncio.create_task(self._drain())

    async def _drain(self):
        while self._proc and self._proc.stderr:
            await self._proc.stderr.readline()

    async def kill(self):
        {kill}

    def _cancel_drain(self):
        self._drain_task.cancel()
"""


def agent(*kill: str) -> str:
    return AGENT.format(kill="\n        ".join(kill))


def test_the_second_report_as_it_would_be_fixed_is_found() -> None:
    found = findings(agent("self._cancel_drain()", "if self._proc:", "    self._proc.terminate()"))
    assert [each.place.line for each in found] == [13]
    assert [each.place.line for each in found[0].related] == [9, 15]


def test_silent_where_the_child_is_terminated_first() -> None:
    assert not findings(agent("self._proc.terminate()", "self._cancel_drain()"))


def test_silent_where_it_gets_no_last_words_anyway() -> None:
    assert not findings(agent("self._cancel_drain()", "self._proc.kill()"))


def test_silent_for_a_task_that_drains_nothing() -> None:
    kill = agent("self._cancel_drain()", "self._proc.terminate()")
    assert not findings(kill.replace("stderr", "returncode"))
