"""HF203: the successor is stored before the old task has ended."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf203_slot_replaced_without_join import RULE
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
    assert RULE.code == kind("HF203").code
    assert lines(kind("HF203").wrong) == [12]
    assert not findings(kind("HF203").right)


BOT = """\
import asyncio

class Bot:
    async def capture(self, user):
        try:
            await asyncio.sleep(1)
        {cleanup}

    async def drop(self, user):
        old = self.tasks.pop(user, None)
        if old is not None:
            old.cancel()
            {join}

    async def command(self, user):
        await self.drop(user)
        self.tasks[user] = asyncio.create_task(self.capture(user))
"""
CLEANUP = "finally: self.edits.append(user)"


def test_a_cancel_in_a_method_of_its_own_is_found() -> None:
    found = findings(BOT.format(cleanup=CLEANUP, join="pass"))
    assert [each.place.line for each in found] == [17]
    assert [each.place.line for each in found[0].related] == [12]


def test_silent_where_the_method_joins() -> None:
    assert not findings(BOT.format(cleanup=CLEANUP, join="await asyncio.wait({old})"))


def test_silent_where_the_join_stands_in_a_branch_of_its_own() -> None:
    assert not findings("""\
import asyncio, contextlib

class Leases:
    async def renew(self, key):
        if (old := self.leases.get(key)) is not None:
            old.cancel()
        if old is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await old
        self.leases[key] = asyncio.create_task(work())
""")


def test_pedantic_where_the_old_task_has_nothing_left_to_do() -> None:
    source = BOT.format(cleanup="except ValueError: pass", join="pass")
    assert not lines(source)
    assert pedantic(source) == [17]


def test_as_reported_and_as_the_report_would_fix_it() -> None:
    for way in ("pop(user, None)", "get(user)"):
        assert lines(f"""\
import asyncio

class Bot:
    async def capture(self, user, text):
        try:
            await asyncio.sleep(1)
        finally:
            self.forget(user)

    async def command(self, user, text):
        old = self.tasks.{way}
        if old is not None:
            old.cancel()
        self.tasks[user] = asyncio.create_task(self.capture(user, text))
""") == [14]


WORKER = """\
import asyncio

class Worker:
    async def work(self, message):
        try:
            await asyncio.sleep(1)
        finally:
            self.edits.append(message)

    async def run(self):
        while True:
            {received}
            if message.is_cancel:
                self.tasks[message.cancelled].cancel()
            else:
                self.tasks[{key}] = asyncio.create_task(self.work(message))
"""


def test_silent_for_the_number_of_a_received_message() -> None:
    received = "envelope = await self.receive()\n            message = envelope.message"
    assert not findings(WORKER.format(received=received, key="message.token"))
    assert not findings(WORKER.format(received=received, key="message.head.request_id"))
    assert findings(WORKER.format(received=received, key="message.user"))
    assert findings(WORKER.format(received="message = self.last()", key="message.token"))
    assert findings(WORKER.format(received="message = message", key="message.token"))
