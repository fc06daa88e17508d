"""HF204: an await between the lookup of the old task and the store of the new one."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf204_slot_await_before_store import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF204").code
    assert lines(kind("HF204").wrong) == [14]
    assert not findings(kind("HF204").right)


BOT = """\
import asyncio

class Bot:
    async def command(self, user, text):
        {body}
        self.tasks[user] = asyncio.create_task(self.capture(user, text))

    async def drop(self, user):
        if user in self.tasks:
            self.tasks[user].cancel()
            await asyncio.wait({{self.tasks.pop(user)}})
"""


def test_as_reported_the_await_after_the_pop_is_found() -> None:
    found = findings(BOT.format(body="old = self.tasks.pop(user, None); await self.send(text)"))
    assert [each.place.line for each in found] == [6]
    assert "removed on line 5" in found[0].message


def test_a_look_before_the_await_is_found() -> None:
    assert lines(BOT.format(body="if user in self.tasks: return\n        await self.send()")) == [7]


def test_a_method_that_takes_out_and_waits_is_found() -> None:
    assert lines(BOT.format(body="await self.drop(user)")) == [6]


def test_silent_where_the_look_is_the_last_thing_before_the_store() -> None:
    assert not findings(BOT.format(body="await self.send(text); old = self.tasks.get(user)"))


def test_silent_where_it_looks_again_until_the_key_is_free() -> None:
    assert not findings(BOT.format(body="while user in self.tasks: await self.tasks[user]"))


def test_silent_for_another_key() -> None:
    assert not findings(BOT.format(body="self.tasks.pop(text, None); await self.send(text)"))


def test_silent_under_a_lock_whatever_it_is_called() -> None:
    assert not findings("""\
import asyncio

class Bot:
    def __init__(self):
        self.turn = asyncio.Lock()

    async def command(self, user):
        async with self.turn:
            old = self.tasks.pop(user)
            await asyncio.wait({old})
            self.tasks[user] = asyncio.create_task(work(user))
""")


def test_silent_where_one_loop_awaits_each_call() -> None:
    assert not findings("""\
import asyncio

class Handler:
    async def handle(self, messages):
        async for message in messages:
            await self.start(message)

    async def start(self, key):
        if key in self.tasks:
            await self.drop(key)
        self.tasks[key] = asyncio.create_task(work(key))
""")


def test_a_loop_that_takes_one_job_after_the_other_never_meets_itself() -> None:
    source = """\
import asyncio

class Runner:
    async def {name}(self, event):
        {loop}:
            event = await self.events.get()
            if event.key in self.tasks:
                continue
            await self.tell(event)
            self.tasks[event.key] = asyncio.create_task(self.work(event))

    async def work(self, event):
        await asyncio.sleep(1)
"""
    assert not findings(source.format(name="process", loop="while True"))
    assert not findings(source.format(name="process", loop="while not self.closed"))
    tried = "try: event = await self.events.get()\n            except KeyError: return"
    guarded = source.replace("event = await self.events.get()", tried)
    assert not findings(guarded.format(name="process", loop="while True"))
    assert lines(source.format(name="process", loop="if True").replace("continue", "return")) == [
        10
    ]


def test_silent_under_a_lock_of_the_key() -> None:
    def inside(entered: str) -> str:
        source = BOT.format(body=f"async with {entered}:\n            await self.drop(user)")
        return source.replace("        self.tasks[user] = ", "            self.tasks[user] = ")

    for lock in ("self.locks.setdefault(user, asyncio.Lock())", "self.locks[user]",
                 "self._lock_for(user)", "self.locks.get(user)"):  # fmt: skip
        assert not findings(inside(lock))
    assert lines(inside("self.rows.setdefault(user, Row())")) == [7]


READER = """\
import asyncio

class Client:
    async def read(self, reader):
        while True:
            answer = await reader.next_answer()
            key = answer.key
            if answer.starts:
                self.tasks[key] = asyncio.create_task(self.handle(answer))
            elif key in self.tasks:
                self.tasks[key].cancel()

    async def handle(self, answer):
        await asyncio.sleep(1)
"""


def test_the_next_iteration_has_another_key() -> None:
    assert findings(READER) == []
    assert lines(
        READER.replace("            key = answer.key\n", "").replace(
            "read(self, ", "read(self, key, "
        )
    ) == [8]


def test_callers_that_share_a_task_are_pedantic() -> None:
    source = """\
import asyncio

class Cache:
    async def fetch(self, key, fresh):
        if key in self.tasks and not fresh:
            try:
                return await self.tasks[key]
            except OSError:
                pass
        task = asyncio.create_task(self.load(key))
        self.tasks[key] = task
        return await task

    async def load(self, key):
        await asyncio.sleep(1)
"""
    assert [each.pedantic for each in findings(source)] == [True]
    cancelled = source.replace(
        "return await self.tasks[key]",
        "self.tasks[key].cancel()\n                await self.tasks[key]",
    )
    assert [each.pedantic for each in findings(cancelled)] == [False]
