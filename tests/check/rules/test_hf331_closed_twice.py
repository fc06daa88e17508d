"""HF331: a flag that is checked before an await and set after it."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf331_closed_twice import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF331").code
    assert lines(kind("HF331").wrong) == [9]
    assert not findings(kind("HF331").right)


LEASE = """\
class Lease:
    async def close(self):
        {close}
"""


def lease(*close: str) -> str:
    return LEASE.format(close="\n        ".join(close))


def test_the_look_that_leaves_is_found() -> None:
    found = findings(lease("if self._closed: return", "await self.free()", "self._closed = True"))
    assert [each.place.line for each in found] == [5]
    assert [each.place.line for each in found[0].related] == [3]


def test_silent_where_the_flag_is_set_first() -> None:
    assert not findings(lease("if self._closed: return", "self._closed = True", "await free()"))


def test_silent_where_something_else_keeps_the_second_one_out() -> None:
    handle = "lock, self._lock = self._lock, None"
    assert not findings(
        lease("if self._closed: return", handle, "await lock.free()", "self._closed = True")
    )


def test_silent_under_a_lock() -> None:
    body = ["if self._closed: return", "await self.free()", "self._closed = True"]
    assert not findings(lease("async with self._lock:", *(f"    {each}" for each in body)))


def test_silent_where_nothing_is_awaited_between() -> None:
    assert not findings(lease("await nap()", "if self._closed: return", "self._closed = True"))
