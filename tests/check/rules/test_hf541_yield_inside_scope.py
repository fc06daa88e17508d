"""HF541: which generator yields inside a scope."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf541_yield_inside_scope import RULE
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
    assert RULE.code == kind("HF541").code
    assert not RULE.pedantic
    assert lines(kind("HF541").wrong) == [10]
    assert findings(kind("HF541").right) == []


def stream(scope: str, before: str = "", kind: str = "async with") -> str:
    return f"""\
import asyncio, anyio, contextlib, pytest
from mcp.client.stdio import stdio_client

{before}
async def stream(source):
    {kind} {scope}:
        async for item in source:
            yield item
"""


@pytest.mark.parametrize(
    "scope",
    [
        "asyncio.TaskGroup() as group",
        "asyncio.timeout(5)",
        "anyio.create_task_group()",
        "self.lock, asyncio.TaskGroup() as group",
        "stdio_client(parameters) as streams",
    ],
)
def test_every_kind_of_scope_is_found(scope: str) -> None:
    (finding,) = findings(stream(scope))
    assert finding.place.line == 8
    assert [each.place.line for each in finding.related] == [6]


def test_a_cancel_scope_is_found() -> None:
    assert lines(stream("anyio.move_on_after(5)", kind="with")) == [8]


def test_a_scope_under_a_name_is_found() -> None:
    source = stream("bound").replace(
        "    async with", "    bound = asyncio.timeout(5)\n    async with"
    )
    assert lines(source) == [9]


def test_a_context_manager_that_keeps_a_scope_open_is_found() -> None:
    source = """\
import asyncio
from contextlib import asynccontextmanager

@asynccontextmanager
async def readers(source):
    async with asyncio.TaskGroup() as group:
        yield group

async def stream(source):
    async with readers(source) as group:
        yield 1
"""
    assert lines(source) == [11]


@pytest.mark.parametrize(
    "decorator",
    [
        "@contextlib.asynccontextmanager",
        "@pytest.fixture",
        "@pytest_asyncio.fixture(scope='module')",
        "@something.unknown",
    ],
)
def test_context_managers_fixtures_and_unknown_decorators_are_silent(decorator: str) -> None:
    assert findings(stream("asyncio.TaskGroup()", decorator)) == []


def test_a_generator_that_is_made_a_context_manager_by_a_call_is_silent() -> None:
    source = stream("asyncio.TaskGroup()") + "\nopened = contextlib.asynccontextmanager(stream)\n"
    assert findings(source) == []


@pytest.mark.parametrize("scope", ["self.lock", "session.get(url) as answer", "aclosing(source)"])
def test_other_context_managers_are_silent(scope: str) -> None:
    assert findings(stream(scope)) == []


def test_a_yield_after_the_scope_is_silent() -> None:
    source = """\
import asyncio

async def stream(source):
    while True:
        async with asyncio.timeout(5):
            item = await source.get()
        yield item
"""
    assert findings(source) == []


def test_the_stream_of_the_report_is_found() -> None:
    # Seed 003: the SDK yields its messages from inside the group that reads them.
    source = """\
import asyncio

async def sdk_stream():
    messages = asyncio.Queue()
    async with Child(), asyncio.TaskGroup() as group:
        group.create_task(read(messages))
        for _ in range(3):
            yield await messages.get()
"""
    assert lines(source) == [8]
