"""HF612: which result claims a success after an error."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf612_success_made_up import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def pedantic_lines(source: str) -> list[int]:
    return [each.place.line for each in findings(source) if each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF612").code
    assert not RULE.pedantic
    assert lines(kind("HF612").wrong) == [5]
    assert findings(kind("HF612").right) == []


def handled(result: str, kind: str = "Exception as e") -> str:
    return f"""\
async def run(phase):
    try:
        return await phase()
    except {kind}:
        return {result}
"""


@pytest.mark.parametrize(
    "result",
    [
        "{'success': True}",
        "{'status': 'ok', 'value': None}",
        "Result(success=True)",
        "Result(status='completed')",
        "{'is_error': False, 'subtype': 'success'}",
    ],
)
def test_a_literal_success_is_found(result: str) -> None:
    assert lines(handled(result)) == [5]
    assert lines(handled(result, "BaseException")) == [5]
    assert findings(handled(result, "ValueError")) == []


@pytest.mark.parametrize(
    "result",
    [
        "{'success': False}",
        "{'success': True, 'error': str(e)}",
        "{'success': True, 'warning': 'late'}",
        "Result(success=True, cause=e)",
        "{'status': 'failed'}",
        "None",
        "True",
    ],
)
def test_a_result_that_names_the_error_is_not_reported(result: str) -> None:
    assert findings(handled(result)) == []


def test_a_plain_true_is_a_matter_of_taste() -> None:
    source = """\
async def run(phase, go):
    if not go:
        return False
    try:
        await phase()
        return True
    except Exception:
        return True
"""
    assert lines(source) == []
    assert pedantic_lines(source) == [8]
    assert findings(source.replace("run", "is_open")) == []


def test_the_reported_wrapper_yields_a_success() -> None:
    """Seed 003: the stream ends with a result that was made up."""
    source = """\
async def run(self):
    try:
        async for message in self.sdk():
            yield message
    except Exception as e:
        error_type = self._classify_error(e)
        if error_type == "taskgroup_cleanup":
            yield {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "result": "Phase completed successfully (TaskGroup cleanup noise ignored)",
            }
            return
        raise
"""
    assert lines(source) == [8]
