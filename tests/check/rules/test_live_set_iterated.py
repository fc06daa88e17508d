"""HF411: which iteration can be cut by others."""

from __future__ import annotations

import pytest

from holdfast.catalogue import kind
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.live_set_iterated import RULE
from holdfast.check.source import parse


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF411").code
    assert not RULE.pedantic
    assert lines(kind("HF411").wrong) == [14]
    assert findings(kind("HF411").right) == []


def test_the_fix_is_a_copy_and_is_safe() -> None:
    fix = findings(kind("HF411").wrong)[0].fix
    assert fix is not None
    assert fix.safe
    assert [edit.text for edit in fix.edits] == ["list(self._tasks)"]


ROOMS = """\
import asyncio
class Rooms:
    def __init__(self):
        self.members = {}
    def leave(self, name):
        self.members.pop(name, None)
    async def tell(self, words):
        for member in self.members.values():
            await member.send(words)
"""


def test_a_dict_that_a_method_takes_from_is_found() -> None:
    assert lines(ROOMS) == [8]
    assert [each.place.line for each in findings(ROOMS)[0].related] == [9, 6]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.members.values()", "list(self.members.values())"),
        ("self.members.values()", "self.members.copy().values()"),
        ("await member.send(words)", "member.send(words)"),
        ("await member.send(words)", "await member.send(words)\n            break"),
        ("await member.send(words)", "return await member.send(words)"),
        ("self.members.pop(name, None)", "self.members[name].pop()"),
        ("self.members.pop(name, None)", "self.members = {}"),
        ("def leave", "def close"),
        ("self.members = {}", "self.members = make()"),
    ],
)
def test_a_loop_that_nobody_can_cut_is_left_alone(old: str, new: str) -> None:
    assert findings(ROOMS.replace(old, new)) == []


def test_a_list_does_not_raise() -> None:
    source = ROOMS.replace("{}", "[]").replace(".values()", "").replace("pop(name, None)", "pop()")
    assert findings(source) == []


def test_a_lock_that_both_hold_keeps_them_apart() -> None:
    source = """\
import asyncio
class Rooms:
    def __init__(self):
        self.members = set()
    async def leave(self, member):
        async with self.lock:
            self.members.discard(member)
    async def tell(self, words):
        async with self.lock:
            for member in self.members:
                await member.send(words)
"""
    assert findings(source) == []
    assert lines(
        source.replace("async with self.lock:\n            self", "if 1:\n            self")
    ) == [10]


def test_a_task_that_was_cancelled_and_joined_takes_nothing_any_more() -> None:
    source = """\
import asyncio
class Fetcher:
    def __init__(self):
        self.pending = set()
        self.task = create_task(self.run())
    async def run(self):
        self.pending -= await self.done()
    async def close(self):
        self.task.cancel()
        await self.task
        for each in self.pending:
            await each
"""
    assert findings(source) == []
    assert lines(source.replace("        await self.task\n", "")) == [10]


def test_a_lock_that_all_callers_hold_is_held() -> None:
    source = """\
import asyncio
class Rooms:
    def __init__(self):
        self.members = {}
    async def leave(self, name):
        async with self.lock:
            self._drop(name)
    def _drop(self, name):
        self.members.pop(name)
    async def close(self):
        async with self.lock:
            for member in self.members.values():
                await member.close()
"""
    assert findings(source) == []
    assert lines(source.replace("_drop", "drop")) == [12]
