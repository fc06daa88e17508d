"""HF542: what is entered in one task and exited in another."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf542_left_in_another_task import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_with_pedantic_and_the_right_one_is_not() -> None:
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


def test_a_stack_in_a_local_name_is_the_attribute_that_it_is_stored_in() -> None:
    source = CLIENT.replace(
        "self._stack = AsyncExitStack()\n        self.streams = await self._stack.",
        "stack = AsyncExitStack()\n        self._stack = stack\n        self.streams = await stack.",
    ).replace("await self._stack.aclose()", "stack = self._stack\n        await stack.aclose()")
    assert lines(source) == [16]


@pytest.mark.parametrize(
    ("close", "pedantic"),
    [
        ("group.start_soon(self._stack.aclose)", [False]),
        ("self._task = asyncio.create_task(self._stack.aclose())", [True]),
        (
            "stack = AsyncExitStack()\n        self._task = asyncio.create_task(stack.aclose())",
            [True],
        ),
        ("group.start_soon(self._client.aclose)", []),
        ("group.start_soon(self._client)", []),
        ("group.start_soon()", []),
        ("await self._stack.aclose()", []),
    ],
)
def test_an_exit_stack_that_is_closed_in_a_new_task(close: str, pedantic: list[bool]) -> None:
    source = (
        "import asyncio\nfrom contextlib import AsyncExitStack\n\nclass C:\n    def __init__(self):\n"
        "        self._stack = AsyncExitStack()\n        self._client = Client()\n\n"
        f"    async def close(self, group):\n        {close}\n"
    )
    module = Module(parse("x.py", source.encode()), "x")
    assert [each.pedantic for each in RULE.check(module)] == pedantic
