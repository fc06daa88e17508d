"""HF425: which locks belong to `threading`, and where they are held over an `await`."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf425_thread_lock_over_await import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF425").code
    assert lines(kind("HF425").wrong) == [11]
    assert findings(kind("HF425").right) == []


def held(body: str, lock: str = "self._lock = threading.Lock()") -> str:
    return f"""\
import asyncio, threading
from dataclasses import field
from threading import Lock
top = Lock()
class Store:
    {"pass" if lock.startswith("self.") else lock}
    def __init__(self, given, typed: threading.Lock):
        {lock if lock.startswith("self.") else "pass"}
    async def get(self, key, mine: threading.Semaphore, any_lock):
        local = threading.Lock()
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "        with self._lock:\n            await self.load()",
        "        with top:\n            async for each in self.all():\n                print(each)",
        "        with mine:\n            async with self.session():\n                pass",
        "        with local:\n            await self.load()",
        "        with self._lock:\n            yield await self.load()",
        "        with open('x') as file, self._lock:\n            await self.load(file)",
        "        self._lock.acquire()\n        try:\n            await self.load()\n"
        "        finally:\n            self._lock.release()",
        "        def inner():\n            pass\n        with self._lock:\n            await self.load()",
    ],
)
def test_a_lock_that_is_held_over_an_await_is_found(body: str) -> None:
    assert len(lines(held(body))) == 1


@pytest.mark.parametrize(
    "lock",
    [
        "self._lock = Lock()",
        "self._lock: Lock = threading.BoundedSemaphore(3)",
        "self._lock = typed",
        "_lock = threading.Lock()",
        "_lock: Lock = field(default_factory=threading.Lock)",
    ],
)
def test_a_lock_is_known_by_what_creates_it(lock: str) -> None:
    assert len(lines(held("        with self._lock:\n            await self.load()", lock))) == 1


@pytest.mark.parametrize(
    ("body", "lock"),
    [
        ("with self._lock:\n            await self.load()", "self._lock = asyncio.Lock()"),
        ("with self._lock:\n            await self.load()", "self._lock = given"),
        ("with self._lock:\n            await self.load()", "self._lock = given or threading.Lock()"),
        ("with self._other:\n            await self.load()", "self._lock = threading.Lock()"),
        ("with any_lock:\n            await self.load()", "self._lock = threading.Lock()"),
        ("with unknown:\n            await self.load()", "self._lock = threading.Lock()"),
        ("with self._lock:\n            self.n = 1\n        await self.load()", ""),
        ("async with self._lock:\n            await self.load()", ""),
        ("with self._lock:\n            async def later():\n                await self.load()", ""),
        ("with self._lock.part:\n            await self.load()", ""),
        ("await self._lock.acquire()\n        await self.load()\n        self._lock.release()", ""),
        ("self._lock.acquire()\n        self.n = 1\n        self._lock.release()\n"
         "        await self.load()", ""),
        ("self._lock.acquire(timeout=1)\n        await self.load()\n        self._lock.release()", ""),
        ("self._lock.acquire(False)\n        await self.load()\n        self._lock.release()", ""),
        ("self._lock.acquire()\n        await self.load()", ""),
    ],
)  # fmt: skip
def test_other_locks_and_locks_that_are_released_before_are_not_reported(
    body: str, lock: str
) -> None:
    assert findings(held(f"        {body}", lock or "self._lock = threading.Lock()")) == []


def test_two_classes_of_locks_are_no_evidence() -> None:
    body = "        with self._lock:\n            await self.load()"
    more = "    def reset(self):\n        self._lock = asyncio.Lock()\n"
    assert findings(held(body) + more) == []


@pytest.mark.parametrize("made", ["threading.RLock()", "threading.Condition()"])
def test_a_lock_that_the_same_thread_enters_again_is_pedantic(made: str) -> None:
    source = held("        with self._lock:\n            await self.load()", f"self._lock = {made}")
    assert lines(source) == []
    assert len(findings(source)) == 1
