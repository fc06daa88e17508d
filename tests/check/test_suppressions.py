"""Comments that suppress findings, and unused ones."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding, Span
from handfast._check.fixes.apply_fixes import fix_text
from handfast._check.suppressions import filter_suppressed


def at(line: int, code: str = "HF201", end_line: int = 0) -> Finding:
    return Finding(code, "wrong", Span("x.py", line, 1, end_line or line, 5))


def left(text: str, *findings: Finding, run: bool = True) -> list[tuple[str, int]]:
    kept = filter_suppressed("x.py", text, findings, lambda code: run)
    return [(each.code, each.place.line) for each in kept]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa", "#noqa", "# NoQA", "# noqa: HF201", "# noqa:HF201", "# noqa: HF2", "# noqa: HF",
        "# noqa : HF201", "# noqa: F401, HF201", "# noqa: F401 HF201", "# type: ignore # noqa: HF201",
        "# noqa: HF201 because it is fine", "# noqa: HF201,F401",
    ],
)  # fmt: skip
def test_a_comment_suppresses_findings_of_its_line(comment: str) -> None:
    assert left(f"x = 1  {comment}\n", at(1)) == []


@pytest.mark.parametrize("comment", ["# noqa: F401", "# noqa: BLE001, F401", "# nothing"])
def test_codes_of_other_tools_suppress_nothing_and_are_not_reported(comment: str) -> None:
    assert left(f"x = 1  {comment}\n", at(1)) == [("HF201", 1)]


def test_a_comment_does_not_apply_to_another_line() -> None:
    assert left("x = 1\ny = 2  # noqa\n", at(1)) == [("HF201", 1)]


def test_a_comment_at_the_end_of_a_long_call_applies_if_it_has_the_code() -> None:
    text = "x = f(\n  1,\n)  # noqa: HF201\n"
    assert left(text, at(1, end_line=3)) == []
    assert left(text.replace(": HF201", ""), at(1, end_line=3)) == [("HF201", 1)]


def test_a_string_is_not_a_comment() -> None:
    assert left("x = '# noqa'\n", at(1)) == [("HF201", 1)]


def test_a_comment_can_apply_to_a_whole_file() -> None:
    assert left("# handfast: noqa\nx = 1\ny = 2\n", at(2), at(3, "HF301")) == []
    text = "# handfast: noqa: HF201, HF4\nx = 1\ny = 2  # noqa: HF4\n"
    assert left(text, at(2), at(3, "HF301"), at(3, "HF401")) == [("HF301", 3)]


def test_a_comment_for_the_file_must_be_on_a_line_of_its_own() -> None:
    assert left("x = 1  # handfast: noqa\ny = 2\n", at(2)) == [("HF201", 2)]


def test_an_unused_comment_is_reported() -> None:
    assert left("x = 1\n\ny = 2  # noqa: HF201, F401\n") == [("HF001", 3)]
    assert left("# handfast: noqa: HF3\nx = 1\n", at(2)) == [("HF001", 1), ("HF201", 2)][::-1]


def test_a_comment_for_a_rule_that_did_not_run_is_not_reported() -> None:
    assert left("x = 1  # noqa: HF201\n", run=False) == []


def test_a_bare_comment_may_be_for_another_tool() -> None:
    assert left("x = 1  # noqa\n") == []


def test_the_report_of_an_unused_comment_can_be_suppressed() -> None:
    assert left("x = 1  # noqa: HF201, HF001\n") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: HF201\n", "x = 1\n"),
        ("x = 1  # noqa: HF201, F401\n", "x = 1  # noqa: F401\n"),
        ("x = 1  # noqa: HF201  # why\n", "x = 1    # why\n"),
        ("x = 1  # noqa: HF201 why\n", "x = 1  # why\n"),
        ("x = 1  # type: ignore  # noqa: HF201\n", "x = 1  # type: ignore\n"),
        ("# handfast: noqa: HF201, HF3\nx\n", "# handfast: noqa: HF3\nx\n"),
        ("x = 'ä'  # noqa: HF201\r\ny\r\n", "x = 'ä'\r\ny\r\n"),
    ],
)
def test_the_fix_removes_only_unused_codes(before: str, after: str) -> None:
    used = [at(2, "HF301")] if "HF3," not in before and "HF3" in before else []
    found = filter_suppressed("x.py", before, used, lambda code: True)
    assert fix_text(before, found)[0] == after


def test_a_long_line_of_noqa_is_read_once() -> None:
    # Attack 15: a search that starts again at each `noqa` would take minutes.
    assert left("# " + "noqa " * 400_000 + "\n") == []


def test_many_comments_are_matched_by_their_lines() -> None:
    text = "x = 1  # noqa: HF201\n" * 20_000
    assert left(text, at(1), at(19_999)) == [
        ("HF001", line) for line in range(2, 20_001) if line != 19_999
    ]
