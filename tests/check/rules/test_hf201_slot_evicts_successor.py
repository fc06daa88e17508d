"""HF201: which code may remove the entry of a key at the end of a task."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf201_slot_evicts_successor import RULE
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
    assert RULE.code == kind("HF201").code
    assert pedantic(kind("HF201").wrong) == [15]
    assert not findings(kind("HF201").right)


BOT = """\
import asyncio

class Bot:
    def __init__(self):
        self.tasks = {{}}

    async def capture(self, user, text):
        try:
            await asyncio.sleep(1)
        finally:
            self.forget(user)

    def forget(self, user):
        {forget}

    async def command(self, user, text):
        old = self.tasks.get(user)
        if old is not None:
            old.cancel()
        self.tasks[user] = asyncio.create_task(self.capture(user, text))
"""


def test_the_unconditional_pop_that_the_first_report_asks_for_is_found() -> None:
    found = findings(BOT.format(forget="self.tasks.pop(user, None)"))
    assert [each.place.line for each in found] == [14]
    assert [each.place.line for each in found[0].related] == [20, 19]
    assert "`Bot.command` (line 20)" in found[0].message


def test_the_identity_guard_of_the_first_report_is_right() -> None:
    guarded = "if self.tasks.get(user) is asyncio.current_task(): self.tasks.pop(user, None)"
    assert not findings(BOT.format(forget=guarded))


def test_a_dict_of_the_module_counts_as_well() -> None:
    assert lines("""\
import asyncio

_captures = {}

async def _capture(key):
    try:
        await asyncio.sleep(1)
    finally:
        _captures.pop(key, None)

def _cancel(key):
    task = _captures.pop(key, None)
    if task and not task.done():
        task.cancel()

async def forward(user, thread):
    key = (user, thread)
    _cancel(key)
    _captures[key] = asyncio.create_task(_capture(key))
""") == [9]


def test_a_done_callback_that_pops_is_found_where_the_old_one_is_cancelled() -> None:
    assert lines("""\
import asyncio

class Saves:
    def start(self, key):
        if key in self.tasks:
            self.tasks[key].cancel()
        task = self.tasks[key] = asyncio.create_task(self.save(key))
        task.add_done_callback(lambda _: self.tasks.pop(key, None))

    async def save(self, key):
        await asyncio.sleep(1)
""") == [8]


CALLBACK = """\
import asyncio, uuid

class Saves:
    async def start(self, key):
        {before}
        task = self.tasks[{key}] = asyncio.create_task(self.save(key))
        task.add_done_callback(lambda _: self.tasks.pop({key}, None))

    async def save(self, key):
        await asyncio.sleep(1)
"""


def test_silent_where_the_key_is_looked_for_before() -> None:
    assert not findings(CALLBACK.format(before="if key in self.tasks: return", key="key"))


def test_silent_where_the_old_one_was_joined() -> None:
    assert not findings(CALLBACK.format(before="await self.tasks[key]", key="key"))


def test_silent_where_the_key_is_made_anew() -> None:
    assert not findings(CALLBACK.format(before="job = uuid.uuid4()", key="job"))


def test_silent_under_a_lock() -> None:
    assert not findings("""\
import asyncio

class Saves:
    async def start(self, key):
        async with self._lock:
            task = self.tasks[key] = asyncio.create_task(self.save(key))
            task.add_done_callback(lambda _: self.tasks.pop(key, None))
""")


def test_a_store_that_looks_at_nothing_is_pedantic() -> None:
    source = CALLBACK.format(before="pass", key="key")
    assert not lines(source)
    assert pedantic(source) == [7]


TIMERS = """\
import asyncio

class Timers:
    def reset(self, key):
        self.stop(key)

        async def timer():
            {timer}

        self.tasks[key] = asyncio.create_task(timer())

    def stop(self, key):
        old = self.tasks.pop(key, None)
        if old is not None:
            old.cancel()

    async def work(self, key):
        {work}
"""


def timers(timer: str, work: str = "pass") -> str:
    return TIMERS.format(timer=timer, work=work)


def test_a_removal_that_a_cancelled_task_does_not_run_is_not_reported() -> None:
    assert not lines(timers("await asyncio.sleep(1); self.stop(key)"))
    assert not lines(timers("await asyncio.sleep(1); self.tasks.pop(key, None)"))
    assert not lines(timers("await self.work(key)", "await asyncio.sleep(1); self.stop(key)"))


def test_what_a_cancelled_task_does_come_to_is_found() -> None:
    sleep = "try: await asyncio.sleep(1)\n            "
    assert lines(timers(sleep + "finally: self.stop(key)")) == [14]
    assert lines(timers(sleep + "except asyncio.CancelledError: pass\n            self.stop(key)"))
    work = "try: await asyncio.sleep(1)\n        finally: self.stop(key)"
    assert lines(timers("await self.work(key)", work)) == [13]


RECORDS = """\
import asyncio
class Entry:
    def __init__(self, task):
        self.task = task
class Timers:
    def start(self, key):
        old = self._entries.get(key)
        if old is not None:
            {end}
        self._entries[key] = Entry(asyncio.create_task(self._run(key)))
    async def _run(self, key):
        try:
            await self.work(key)
        finally:
            {leave}
"""
LEAVE = "self._entries.pop(key, None)"


def test_an_entry_may_be_a_record_with_the_task() -> None:
    assert lines(RECORDS.format(end="old.task.cancel()", leave=LEAVE)) == [15]


def test_silent_for_a_record_that_is_compared_joined_or_of_which_another_field_is_cancelled() -> (
    None
):
    own = "if self._entries[key].task is asyncio.current_task(): self._entries.pop(key)"
    assert lines(RECORDS.format(end="old.task.cancel()", leave=own)) == []
    joined = "old.task.cancel(); asyncio.get_event_loop().run_until_complete(old.task)"
    assert lines(RECORDS.format(end=joined, leave=LEAVE)) == []
    assert lines(RECORDS.format(end="old.timer.cancel()", leave=LEAVE)) == []
    assert lines(RECORDS.format(end="return", leave=LEAVE)) == []


def test_silent_where_the_record_of_another_key_is_cancelled() -> None:
    source = RECORDS.format(end="old.task.cancel()", leave=LEAVE)
    assert (
        lines(source.replace("old = self._entries.get(key)", "old = self._entries.get(other)"))
        == []
    )
    assert lines(source.replace("old = self._entries.get(key)", "old = self._entries[key]")) == [15]
    through = source.replace("old.task.cancel()", "self._entries[key].task.cancel()")
    assert lines(through) == [15]
    # What the method of a record does is not known.
    assert lines(source.replace("old.task.cancel()", "old.cancel()")) == []
