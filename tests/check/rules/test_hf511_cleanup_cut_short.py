"""HF511: which cleanup a second cancellation ends half-way."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf511_cleanup_cut_short import RULE
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
    assert RULE.code == kind("HF511").code
    assert lines(kind("HF511").wrong) == []
    assert pedantic(kind("HF511").wrong) == [5]
    assert findings(kind("HF511").right) == []


TWICE = """\
import asyncio

class Feed:
    def start(self):
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        try:
            await self.read()
        finally:
            await self.flush()
            self.lock.release()

    async def stop(self):
        self._task.cancel()
        await asyncio.wait_for(self._task, 5)
"""


def test_a_task_that_is_cancelled_twice_is_found_with_both_places() -> None:
    (finding,) = findings(TWICE)
    assert (finding.place.line, finding.pedantic) == (11, False)
    assert [each.place.line for each in finding.related] == [12, 16]


def test_without_the_second_cancellation_it_is_pedantic() -> None:
    source = TWICE.replace("asyncio.wait_for(self._task, 5)", "asyncio.wait({self._task})")
    assert lines(source) == []
    assert pedantic(source) == [11]


def test_an_aexit_is_clean_up() -> None:
    source = """\
class Feed:
    async def __aexit__(self, *_):
        await self.flush()
        await self.close()
"""
    assert pedantic(source) == [3]


def test_an_await_that_is_the_last_is_silent() -> None:
    source = TWICE.replace("            self.lock.release()\n", "")
    assert findings(source) == []


def test_a_shielded_scope_is_silent() -> None:
    source = """\
import anyio

async def run(self):
    try:
        await self.read()
    finally:
        with anyio.CancelScope(shield=True):
            await self.flush()
        self.lock.release()
"""
    assert findings(source) == []


def test_speaking_about_it_is_no_clean_up() -> None:
    source = TWICE.replace("self.lock.release()", "logger.info('gone')")
    assert findings(source) == []


LOCKED = """\
async def use(lock, connection, work):
    await lock.acquire()
    try:
        await work(connection)
    finally:
        await connection.rollback()
        lock.release()
"""


def test_a_lock_that_one_cancellation_leaves_taken_is_found() -> None:
    (finding,) = RULE.check(Module(parse("x.py", LOCKED.encode()), "x"))
    assert (finding.place.line, finding.pedantic) == (6, False)
    assert [each.place.line for each in finding.related] == [7, 2]


def test_a_lock_that_is_not_taken_here_needs_a_second_cancellation() -> None:
    source = LOCKED.replace("await lock.acquire()", "await connection.open()")
    (finding,) = RULE.check(Module(parse("x.py", source.encode()), "x"))
    assert finding.pedantic
    first = LOCKED.replace("        await connection.rollback()\n        lock.release()",
                           "        lock.release()\n        await connection.rollback()")  # fmt: skip
    assert list(RULE.check(Module(parse("x.py", first.encode()), "x"))) == []
