"""HF403: which code may call `get_event_loop`."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf403_get_event_loop_in_thread import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF403").code
    assert not RULE.pedantic
    assert lines(kind("HF403").wrong) == [11]
    assert findings(kind("HF403").right) == []


@pytest.mark.parametrize(
    "start", ["threading.Thread(target=work)", "loop.run_in_executor(None, work)",
              "asyncio.to_thread(work)"]
)  # fmt: skip
def test_a_question_on_a_thread_is_found(start: str) -> None:
    source = f"""\
import asyncio, threading
def work():
    loop = asyncio.get_event_loop()
    return loop
def go(loop):
    return {start}
"""
    assert lines(source) == [3]


@pytest.mark.parametrize(
    "body",
    [
        "loop = asyncio.new_event_loop()\n    return asyncio.get_event_loop()",
        "return asyncio.get_event_loop().run_until_complete(job())",
        "try:\n        return asyncio.get_event_loop()\n    except RuntimeError:\n        pass",
        "asyncio.set_event_loop(None)\n    return asyncio.get_event_loop()",
    ],
)
def test_who_makes_a_loop_or_expects_the_error_may_ask(body: str) -> None:
    source = f"""\
import asyncio, threading
def work():
    {body}
def go(loop):
    return asyncio.to_thread(work)
"""
    assert findings(source) == []


def test_the_reported_bridge_asks_inside_an_operator() -> None:
    source = """\
import asyncio
from reactivex import operators as ops
def pipeline(execute):
    def start(msg):
        loop = asyncio.get_event_loop()
        return asyncio.ensure_future(execute(msg), loop=loop)
    return ops.flat_map(start)
"""
    assert lines(source) == [5]


def test_code_that_runs_on_no_thread_may_ask() -> None:
    source = "import asyncio\ndef work():\n    return asyncio.get_event_loop()\n"
    assert findings(source) == []


def test_a_file_that_sets_a_policy_is_not_reported() -> None:
    source = kind("HF403").wrong
    assert lines(source)
    assert lines(f"{source}\nasyncio.set_event_loop_policy(AnyThreadPolicy())\n") == []
