"""HF611: which handler tests the text instead of the type."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf611_judged_by_text import RULE
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
    assert RULE.code == kind("HF611").code
    assert not RULE.pedantic
    assert lines(kind("HF611").wrong) == [9]
    assert findings(kind("HF611").right) == []


def handled(test: str, before: str = "pass", kind: str = "Exception") -> str:
    return f"""\
async def run(phase):
    try:
        await phase()
    except {kind} as e:
        {before}
        if {test}:
            return
        raise
"""


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("pass", "'noise' in str(e)"),
        ("pass", "'noise' in repr(e).lower()"),
        ("pass", "str(e) == 'noise'"),
        ("pass", "str(e).startswith('noise')"),
        ("pass", "'noise' in e.args[0]"),
        ("pass", "re.search('noise', str(e))"),
        ("words = str(e).lower()", "any(each in words for each in NOISE)"),
        ("words = f'{e}'", "'noise' in words and x"),
    ],
)
def test_every_way_to_look_at_the_words_is_found(before: str, test: str) -> None:
    assert lines(handled(test, before)) == [6]


def test_a_narrow_exception_is_a_matter_of_taste() -> None:
    source = handled("'noise' in str(e)", kind="OSError")
    assert lines(source) == []
    assert pedantic_lines(source) == [6]


@pytest.mark.parametrize(
    "source",
    [
        handled("isinstance(e, ValueError)"),
        handled("e.errno == 2"),
        handled("'noise' in str(e)").replace("return", "raise ValueError from e"),
        handled("'noise' in str(e)").replace("        raise\n", "        log(e)\n"),
        handled("'noise' in str(e)").replace("async def", "def").replace("await ", ""),
        handled("'noise' in names"),
    ],
)
def test_kinds_translations_and_log_lines_are_left_alone(source: str) -> None:
    assert findings(source) == []


def test_the_reported_wrapper_asks_a_method_that_reads_the_words() -> None:
    """Seed 003: the classification stands in a method of its own."""
    source = """\
class Wrapper:
    def _classify_error(self, e: Exception) -> str:
        error_str = str(e).lower()
        if "taskgroup" in error_str and any(k in error_str for k in ["cleanup", "cancelled"]):
            return "taskgroup_cleanup"
        return "other"
    async def run(self):
        try:
            async for message in self.sdk():
                yield message
        except Exception as e:
            error_type = self._classify_error(e)
            if error_type == "taskgroup_cleanup":
                yield {"type": "result"}
                return
            raise
"""
    assert lines(source) == [12]
    assert [each.place.line for each in findings(source)[0].related] == [11, 4]


def test_words_that_only_choose_among_ways_to_go_on_are_left_alone() -> None:
    source = """\
async def run(phase):
    try:
        await phase()
    except Exception as e:
        if isinstance(e, KeyError):
            raise
        if "network" in str(e):
            return "network failed"
        return "failed"
"""
    assert findings(source) == []


@pytest.mark.parametrize(
    "test",
    [
        "'BrokenResourceError' in str(e)",
        "'110043' in str(e) or 'not been modified' in str(e)",
        "'already exists' in str(e) or 'ora-00955' in str(e)",
    ],
)
def test_a_code_or_a_name_of_a_class_in_the_text_is_pedantic(test: str) -> None:
    assert pedantic_lines(handled(test)) == [6]
    assert lines(handled(test)) == []


@pytest.mark.parametrize(
    "test", ["'error 5' in str(e)", "'Errors' in str(e)", "'500 rows' in str(e)"]
)
def test_a_phrase_is_no_code(test: str) -> None:
    assert lines(handled(test)) == [6]


def test_a_function_that_names_a_kind_of_error_is_pedantic() -> None:
    source = handled("is_gone(e)") + "\ndef is_gone(e):\n    return 'was closed' in str(e)\n"
    assert pedantic_lines(source) == [6]
    assert lines(source.replace("is_gone", "classify")) == [6]
