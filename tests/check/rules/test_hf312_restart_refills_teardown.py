"""HF312: a close method that awaits, and a restart that sets the attribute meanwhile."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf312_restart_refills_teardown import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF312").code
    assert lines(kind("HF312").wrong) == [13]
    assert not findings(kind("HF312").right)


SERVICE = """\
import asyncio

class Service:
    async def start(self):
        {start}

    async def stop(self):
        {stop}
"""
STORE = "self._proc = await launch()"
STOP = "self._proc.terminate(); await self._proc.wait(); self._proc = None"


def endless(start: str = STORE, stop: str = STOP) -> str:
    return SERVICE.format(start=start, stop=stop)


def test_the_message_names_the_restart() -> None:
    found = findings(endless())
    assert [each.place.line for each in found] == [8]
    assert [each.place.line for each in found[0].related] == [8, 5]
    assert "`Service.start`" in found[0].message


def test_the_second_report_as_reported_and_as_it_would_be_fixed() -> None:
    assert lines(endless(stop=f"{STOP}; self._cancel_drain()")) == [8]
    assert lines(endless(stop=f"self._cancel_drain(); {STOP}")) == [8]


def test_closed_by_an_await_is_found() -> None:
    assert lines(endless(stop="await self._proc.close(); self._proc = None")) == [8]


def test_silent_with_a_local_name() -> None:
    stop = "proc, self._proc = self._proc, None; proc.terminate(); await proc.wait()"
    assert not findings(endless(stop=stop))


def test_silent_where_nothing_suspends_between() -> None:
    assert not findings(endless(stop="self._proc.terminate(); self._proc = None; await nap()"))


def test_silent_where_a_look_decides_about_the_store() -> None:
    assert not findings(endless(start=f"if self._proc is None: {STORE}"))


def test_silent_where_it_compares_before_it_clears() -> None:
    stop = "p = self._proc; self._proc.kill(); await p.wait()\n        if self._proc is p: self._proc = None"
    assert not findings(endless(stop=stop))


def test_silent_where_both_hold_the_lock_or_their_callers_do() -> None:
    start = f"async with self._lock: {STORE}"
    assert not findings(endless(start, f"async with self._lock: {STOP}"))
    more = "\n    async def _end(self):\n        " + STOP + "\n"
    assert not findings(endless(start, "async with self._lock: await self._end()") + more)


def test_silent_where_nothing_restarts() -> None:
    assert not findings(endless(start="pass"))
