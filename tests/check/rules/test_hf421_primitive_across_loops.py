"""HF421: which primitive is waited for on more than one loop."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf421_primitive_across_loops import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic_lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF421").code
    assert pedantic_lines(kind("HF421").wrong) == [5]
    assert findings(kind("HF421").right) == []


SHARED = """\
import asyncio, threading
lock = asyncio.Lock()
async def call():
    async with lock:
        pass
def one():
    asyncio.run(call())
def two():
    asyncio.run(call())
"""


def test_two_runs_of_what_waits_for_it_are_two_loops() -> None:
    assert lines(SHARED) == [2]
    assert [each.place.line for each in findings(SHARED)[0].related] == [3, 7, 9]


def test_a_thread_with_a_loop_of_its_own_is_another_loop() -> None:
    source = SHARED.partition("def two")[0] + "threading.Thread(target=one).start()\n"
    assert lines(source) == [2]


def test_one_run_is_one_loop() -> None:
    source = SHARED.partition("def two")[0]
    assert lines(source) == []
    assert pedantic_lines(source) == [2]


def test_a_lock_that_nothing_waits_for_is_not_reported() -> None:
    assert findings(SHARED.replace("async with lock:\n        pass", "return lock.locked()")) == []


def test_a_local_lock_is_of_one_loop() -> None:
    source = SHARED.replace("async with lock", "lock = asyncio.Lock()\n    async with lock")
    assert findings(source) == []


def test_a_lock_of_the_class_that_the_class_itself_names_is_meant_to_be_shared() -> None:
    source = kind("HF421").wrong.replace("self.lock:", "Api.lock:")
    assert lines(source) == []
    assert pedantic_lines(source) == [5]


def test_a_model_of_pydantic_copies_the_default_for_each_object() -> None:
    source = """\
import asyncio
from pydantic import BaseModel
from typing import Generic
class Context(BaseModel, Generic[T]):
    _events: asyncio.Queue = asyncio.Queue()
    async def next(self):
        return await self._events.get()
"""
    assert findings(source) == []
    assert pedantic_lines(source.replace("BaseModel, ", "")) == [5]
