"""HF301: a task uses an attribute that its object clears."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf301_cleared_before_join import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF301").code
    assert lines(kind("HF301").wrong) == [15]
    assert not findings(kind("HF301").right)


CLIENT = """\
import asyncio

class Client:
    def start(self):
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        {read}

    async def close(self):
        {close}
"""
LOOP = "while True: await self._ws.receive()"
CLEANUP = "\n        ".join(["try:", "    await work()", "finally:", "    self._ws.end()"])
CANCEL = "self._reader.cancel()"
JOIN = "await asyncio.wait({self._reader})"


def client(read: str, *close: str) -> str:
    return CLIENT.format(read=read, close="\n        ".join(close))


def test_the_body_sees_it_where_the_method_suspends_between() -> None:
    found = findings(client(LOOP, "self._ws = None", "await self.goodbye()", CANCEL, JOIN))
    assert [each.place.line for each in found] == [11]
    assert [each.place.line for each in found[0].related] == [8, 5]
    assert "task's body" in found[0].message


def test_line_order_alone_is_not_enough() -> None:
    assert not findings(client(LOOP, "self._ws = None", CANCEL, JOIN))


def test_the_clean_up_sees_it_without_a_suspension() -> None:
    found = findings(client(CLEANUP, "self._ws = None", CANCEL, JOIN))
    assert [each.place.line for each in found] == [14]
    assert "task's cleanup" in found[0].message


def test_the_clean_up_sees_it_where_the_cancel_comes_first_and_the_join_late() -> None:
    assert lines(client(CLEANUP, CANCEL, "self._ws = None", JOIN)) == [15]


def test_joined_without_a_cancel_it_runs_on() -> None:
    assert lines(client(LOOP, "self._ws = None", "await self._reader")) == [11]


def test_silent_once_it_was_joined() -> None:
    assert not findings(client(LOOP, CANCEL, JOIN, "self._ws = None", "await self.goodbye()"))


def test_silent_where_the_join_stands_under_a_look_at_the_task() -> None:
    joined = f"if self._reader: {CANCEL}; {JOIN}"
    assert not findings(client(LOOP, joined, "self._ws = None", "await self.goodbye()"))


def test_silent_where_the_task_looks_each_time() -> None:
    read = "while self._ws: await self._ws.receive()"
    assert not findings(client(read, "self._ws = None", "await self.goodbye()", CANCEL))


def test_a_look_before_the_last_await_is_no_look() -> None:
    read = "\n        ".join(["while self._ws:", "    await nap()", "    self._ws.ping()"])
    assert lines(client(read, "self._ws = None", "await self.goodbye()", CANCEL)) == [13]


def test_a_method_that_the_task_runs_counts_as_the_task() -> None:
    source = client("while True: await self.once()", "self._ws = None", "await nap()", CANCEL)
    more = "    async def once(self):\n        await nap()\n        self._ws.ping()\n"
    assert lines(source + more) == [11]


def test_swapped_out_and_ended_by_a_method_is_an_end() -> None:
    close = "task, self._reader = self._reader, None; await self.end(task); self._ws = None"
    assert not findings(client(LOOP, close, "await self.goodbye()"))


def test_silent_where_the_method_does_not_end_the_task() -> None:
    assert not findings(client(LOOP, "self._ws = None", "await self.goodbye()"))


def test_as_reported_nothing_suspends_between_the_clearing_and_the_cancel() -> None:
    """The second report: the drain looks again on each round, so it never meets the None."""
    assert not findings("""\
import asyncio

class Agent:
    async def start(self):
        self._proc = await asyncio.create_subprocess_exec("agent")
        self._stderr_task = asyncio.create_task(self._drain_stderr())

    async def _drain_stderr(self):
        while self._proc and self._proc.stderr:
            line = await self._proc.stderr.readline()

    async def _kill(self):
        if self._proc:
            self._proc.kill()
            await self._proc.wait()
            self._proc = None
        if self._stderr_task:
            self._stderr_task.cancel()
            self._stderr_task = None
""")


def test_silent_where_the_body_stores_what_it_then_uses() -> None:
    close = ("self._ws = None", "await self.goodbye()", CANCEL, JOIN)
    entered = "async with connect() as self._ws: await self._ws.run()"
    assert not findings(client(entered, *close))
    assert not findings(client("self._ws = await connect(); await self._ws.run()", *close))
    again = "async with connect() as self._ws:\n            while True: await self._ws.run()"
    assert len(lines(client(again, *close))) == 1
    other = "async with connect() as ws: await self._ws.run()"
    assert len(lines(client(other, *close))) == 1
