"""HF621: which group is dropped as a whole."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf621_group_dropped import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF621").code
    assert not RULE.pedantic
    assert lines(kind("HF621").wrong) == [9]
    assert findings(kind("HF621").right) == []


def handled(kind: str, body: str = "pass", star: str = "") -> str:
    return f"""\
async def run(phase):
    try:
        await phase()
    except{star} {kind}:
        {body}
"""


@pytest.mark.parametrize(
    ("kind", "star"),
    [
        ("ExceptionGroup", ""),
        ("BaseExceptionGroup as group", ""),
        ("exceptiongroup.ExceptionGroup", ""),
        ("(ValueError, ExceptionGroup)", ""),
        ("Exception", "*"),
    ],
)
def test_every_way_to_drop_it_is_found(kind: str, star: str) -> None:
    assert lines(handled(kind, star=star)) == [4]


@pytest.mark.parametrize(
    ("kind", "body", "star"),
    [
        ("ExceptionGroup as group", "log(group)", ""),
        ("ExceptionGroup", "raise", ""),
        ("ExceptionGroup", "raise Failed from None", ""),
        ("ExceptionGroup", "logger.exception('failed')", ""),
        ("ExceptionGroup", "logger.error('failed', exc_info=True)", ""),
        ("TimeoutError", "pass", "*"),
        ("Exception", "pass", ""),
    ],
)
def test_a_group_that_is_used_and_kinds_that_are_named_are_left_alone(
    kind: str, body: str, star: str
) -> None:
    assert findings(handled(kind, body, star)) == []


def test_suppressing_a_group_is_dropping_it() -> None:
    source = """\
import contextlib
async def run(phase):
    with contextlib.suppress(ExceptionGroup):
        await phase()
"""
    assert lines(source) == [3]
