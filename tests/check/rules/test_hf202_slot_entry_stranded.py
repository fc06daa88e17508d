"""HF202: an entry that only the body of its task removes."""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf202_slot_entry_stranded import RULE
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
    assert RULE.code == kind("HF202").code
    assert lines(kind("HF202").wrong) == [9]
    assert not findings(kind("HF202").right)


CAPTURES = """\
import asyncio

class Captures:
    def __init__(self):
        self.running = {{}}

    def start(self, key):
        task = self.running[key] = asyncio.create_task(self.run(key))
        {after}

    def stop(self, key):
        {stop}

    async def run(self, key):
        try:
            await asyncio.sleep(1)
        finally:
            self.running.pop(key, None)
"""


def test_a_cancel_that_leaves_the_entry_in_is_found() -> None:
    found = findings(CAPTURES.format(after="pass", stop="self.running[key].cancel()"))
    assert [each.place.line for each in found] == [8]
    assert [each.place.line for each in found[0].related] == [18, 12]


def test_silent_where_the_canceller_takes_it_out() -> None:
    assert not findings(CAPTURES.format(after="pass", stop="self.running.pop(key).cancel()"))


def test_silent_with_a_done_callback() -> None:
    after = "task.add_done_callback(lambda _: self.running.pop(key, None))"
    assert not findings(CAPTURES.format(after=after, stop="self.running[key].cancel()"))


def test_silent_where_nothing_cancels() -> None:
    assert not findings(CAPTURES.format(after="pass", stop="return key in self.running"))


def test_pedantic_where_only_all_are_cancelled() -> None:
    stop = "[task.cancel() for task in self.running.values()]"
    assert pedantic(CAPTURES.format(after="pass", stop=stop)) == [8]


def test_silent_where_a_base_class_is_not_known() -> None:
    source = CAPTURES.format(after="pass", stop="self.running[key].cancel()")
    assert not findings(source.replace("class Captures:", "class Captures(Elsewhere):"))


def test_silent_where_a_done_callback_is_made_by_a_call() -> None:
    after = "task.add_done_callback(self.ended(key))"
    assert not findings(CAPTURES.format(after=after, stop="self.running[key].cancel()"))
