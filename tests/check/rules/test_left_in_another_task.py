"""HF542: what is entered in one task and left in another."""

from __future__ import annotations

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.left_in_another_task import RULE
from holdfast.check.source import parse


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_when_asked_for_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF542").code
    assert pedantic(kind("HF542").wrong) == [11]
    assert findings(kind("HF542").right) == []


CLIENT = """\
import asyncio
from contextlib import AsyncExitStack
from mcp.client.stdio import stdio_client

class Client:
    def start(self):
        self._task = asyncio.create_task(self._connect())

    async def _connect(self):
        self._stack = AsyncExitStack()
        self.streams = await self._stack.enter_async_context(stdio_client(self.parameters))

    async def close(self):
        await self._stack.aclose()
"""


def test_a_scope_that_a_task_enters_and_close_leaves_is_found_with_both_places() -> None:
    (finding,) = findings(CLIENT)
    assert (finding.place.line, finding.pedantic) == (14, False)
    assert [each.place.line for each in finding.related] == [11, 7]


def test_a_pair_of_methods_that_any_task_may_call_is_found() -> None:
    source = CLIENT.replace("asyncio.create_task(self._connect())", "None")
    assert lines(source) == [14]


def test_a_task_group_entered_by_hand_in_a_task_is_found() -> None:
    source = """\
import asyncio

class Pool:
    def start(self):
        self._task = asyncio.create_task(self._open())

    async def _open(self):
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()

    async def close(self):
        await self._group.__aexit__(None, None, None)
"""
    assert lines(source) == [12]


def test_a_task_that_enters_and_leaves_is_silent() -> None:
    source = (
        CLIENT.replace("asyncio.create_task(self._connect())", "asyncio.create_task(self._run())")
        + """\

    async def _run(self):
        await self._connect()
        await self._stop.wait()
        await self.close()
"""
    )
    assert findings(source) == []


def test_a_class_that_is_itself_entered_and_left_is_silent() -> None:
    source = """\
import asyncio

class Pool:
    async def __aenter__(self):
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()

    async def __aexit__(self, *error):
        await self._group.__aexit__(*error)
"""
    assert findings(source) == []


def test_a_stack_without_a_scope_on_it_is_silent() -> None:
    source = CLIENT.replace("stdio_client(self.parameters)", "self.session()")
    assert findings(source) == []
