"""HF522: which task is cancelled by one of several waiters."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf522_join_cancels_task import RULE
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
    assert RULE.code == kind("HF522").code
    assert not RULE.pedantic
    assert lines(kind("HF522").wrong) == [10]
    assert findings(kind("HF522").right) == []


def getting(test: str, store: str, wait: str, name: str = "get") -> str:
    return f"""\
import asyncio

class Rates:
    async def {name}(self, key):
        if {test}:
            {store} = asyncio.create_task(self.fetch(key))
        return {wait}
"""


@pytest.mark.parametrize(
    ("test", "store", "wait"),
    [
        ("self._task is None", "self._task", "await self._task"),
        ("not self._task", "self._task", "await self._task"),
        ("self._task is None or self._task.done()", "self._task", "await self._task"),
        ("key not in self._tasks", "self._tasks[key]", "await self._tasks[key]"),
    ],
)
def test_made_once_and_awaited_by_all_is_found(test: str, store: str, wait: str) -> None:
    assert lines(getting(test, store, wait)) == [7]


def test_a_task_under_a_local_name_is_found() -> None:
    source = """\
import asyncio

class Rates:
    async def get(self, key):
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(self.fetch(key))
            self._tasks[key] = task
        return await task
"""
    assert lines(source) == [9]


@pytest.mark.parametrize(
    "wait",
    ["await asyncio.shield(self._task)", "await asyncio.wait({self._task})", "self._task"],
)
def test_waiting_without_touching_it_is_silent(wait: str) -> None:
    assert findings(getting("self._task is None", "self._task", wait)) == []


def test_a_close_method_is_silent() -> None:
    assert findings(getting("not self._task", "self._task", "await self._task", "close")) == []


def test_a_lock_around_it_is_silent() -> None:
    source = """\
import asyncio

class Rates:
    async def get(self):
        async with self._lock:
            if self._task is None:
                self._task = asyncio.create_task(self.fetch())
            return await self._task
"""
    assert findings(source) == []


def test_a_task_that_is_made_anew_each_time_is_silent() -> None:
    source = """\
import asyncio

class Rates:
    async def get(self):
        self._task = asyncio.create_task(self.fetch())
        return await self._task
"""
    assert findings(source) == []


def test_one_who_makes_it_and_leaves_is_silent() -> None:
    source = """\
import asyncio

class Flow:
    async def step(self):
        if not self._task:
            self._task = asyncio.create_task(self.fetch())
            return "later"
        await self._task
"""
    assert findings(source) == []


@pytest.mark.parametrize(
    ("test", "there"),
    [
        ("key in self._tasks", "self._tasks[key]"),
        ("(task := self._tasks.get(key)) is not None", "task"),
    ],
)
def test_the_one_that_is_there_awaited_and_returned_is_found(test: str, there: str) -> None:
    source = f"""\
import asyncio

class Rates:
    async def get(self, key):
        if {test}:
            return await {there}
        self._tasks[key] = made = asyncio.create_task(self.fetch(key))
        return await asyncio.shield(made)
"""
    assert lines(source) == [6]


def test_one_that_is_also_made_without_asking_is_silent() -> None:
    source = """\
import asyncio

class Rates:
    async def get(self):
        self._task = asyncio.create_task(self.fetch())
        await self.other()
        if self._task is None:
            self._task = asyncio.create_task(self.fetch())
        return await self._task
"""
    assert findings(source) == []


def test_what_a_wait_has_given_back_as_done_can_be_awaited() -> None:
    source = """\
import asyncio

class Gateway:
    async def run(self, other):
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._close.wait())
        await {waited}
        await self._stopping
"""
    assert findings(source.format(waited="asyncio.wait({self._stopping, other})")) == []
    assert lines(source.format(waited="asyncio.wait({other})")) == [8]


DEVICE = """
import asyncio
class Device:
    def __init__(self, loop):
        self._sid = {made}
    {decorated}async def {name}(self):
        {wait}
    def received(self, sid):
        {sets}
"""


def device(
    made: str = "loop.create_future()",
    name: str = "wait_sid",
    wait: str = "return await self._sid",
    sets: str = "if not self._sid.done(): self._sid.set_result(sid)",
    decorated: str = "",
) -> list[int]:
    source = DEVICE.format(made=made, name=name, wait=wait, sets=sets, decorated=decorated)
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_a_future_of_the_object_that_several_callers_await() -> None:
    assert device() == [7]
    assert device(made="asyncio.Future[str]()") == [7]
    assert device(name="sid", decorated="@property\n    ") == [8]
    assert device(wait="await self._sid; await self._sid") == [7]  # one cause


def test_a_future_of_the_object_that_one_waiter_does_not_cancel() -> None:
    assert device(wait="return await asyncio.shield(self._sid)") == []
    assert device(wait="async with self._lock: return await self._sid") == []
    assert device(wait="await asyncio.wait({self._sid})") == []
    assert device(wait="try: await self._sid\n        except asyncio.CancelledError: raise") == []
    assert device(name="run") == []  # mostly one caller
    assert device(name="_wait") == []
    assert device(made="other()") == []
    assert device(made="list[int]()") == []
    assert device(sets="if not self._other.done(): self._other.set_result(sid)") == []
    assert device(sets="self._sid.set_result(sid)") == []  # HF533
    assert (
        device(sets="self._sid.done(); self._sid.set_result(sid); self._sid = asyncio.Future()")
        == []
    )
    assert device(wait="self._sid = asyncio.Future(); await self._sid") == []
