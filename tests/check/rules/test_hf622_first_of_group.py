"""HF622: what happens to the other exceptions of a group."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf622_first_of_group import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF622").code
    assert not RULE.pedantic
    assert lines(kind("HF622").wrong) == [10]
    assert findings(kind("HF622").right) == []


def handled(body: str, kind: str = "ExceptionGroup") -> str:
    return f"""\
async def run(phase):
    try:
        await phase()
    except {kind} as group:
        {body}
"""


@pytest.mark.parametrize(
    "body", ["raise group.exceptions[0]", "raise group.exceptions[0] from None",
             "error = group.exceptions[0]"]
)  # fmt: skip
def test_the_first_alone_is_found(body: str) -> None:
    assert lines(handled(body)) == [5]


def test_a_group_known_by_a_test_of_its_kind_is_found() -> None:
    body = "if isinstance(group, ExceptionGroup): raise group.exceptions[0]"
    assert lines(handled(body, "Exception")) == [5]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("raise group.exceptions[0]", "Exception"),
        ("raise group.exceptions[0] from group", "ExceptionGroup"),
        ("log(group); raise group.exceptions[0]", "ExceptionGroup"),
        ("if len(group.exceptions) == 1: raise group.exceptions[0]", "ExceptionGroup"),
        ("for each in group.exceptions: log(each)", "ExceptionGroup"),
    ],
)
def test_a_group_of_one_or_kept_whole_is_not_reported(body: str, kind: str) -> None:
    assert findings(handled(body, kind)) == []


def grouped(*body: str) -> str:
    inside = "\n            ".join(body)
    return f"""\
async def run(child, others):
    try:
        async with anyio.create_task_group() as group_of_tasks:
            {inside}
    except BaseExceptionGroup as group:
        raise group.exceptions[0]
"""


def test_a_task_group_of_one_task_has_one_error() -> None:
    assert findings(grouped("group_of_tasks.start_soon(child)")) == []
    for more in (
        "group_of_tasks.start_soon(others)",
        "await others()",
        "for each in others: group_of_tasks.start_soon(each)",
    ):
        assert len(lines(grouped("group_of_tasks.start_soon(child)", more))) == 1
    assert len(lines(grouped("other.start_soon(child)"))) == 1
