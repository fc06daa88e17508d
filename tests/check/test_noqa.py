"""Comments that take findings back, and those that take back nothing."""

from __future__ import annotations

import pytest

from holdfast.check.finding import Finding, Place
from holdfast.check.fixing import mend_text
from holdfast.check.noqa import sift


def at(line: int, code: str = "HF201", end_line: int = 0) -> Finding:
    return Finding(code, "wrong", Place("x.py", line, 1, end_line or line, 5))


def left(text: str, *findings: Finding, run: bool = True) -> list[tuple[str, int]]:
    kept = sift("x.py", text, findings, lambda code: run)
    return [(each.code, each.place.line) for each in kept]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa", "#noqa", "# NoQA", "# noqa: HF201", "# noqa:HF201", "# noqa: HF2", "# noqa: HF",
        "# noqa : HF201", "# noqa: F401, HF201", "# noqa: F401 HF201", "# type: ignore # noqa: HF201",
        "# noqa: HF201 because it is fine", "# noqa: HF201,F401",
    ],
)  # fmt: skip
def test_a_comment_takes_back_what_is_on_its_line(comment: str) -> None:
    assert left(f"x = 1  {comment}\n", at(1)) == []


@pytest.mark.parametrize("comment", ["# noqa: F401", "# noqa: BLE001, F401", "# nothing"])
def test_codes_of_others_take_nothing_of_ours_back_and_are_left_alone(comment: str) -> None:
    assert left(f"x = 1  {comment}\n", at(1)) == [("HF201", 1)]


def test_another_line_is_not_meant() -> None:
    assert left("x = 1\ny = 2  # noqa\n", at(1)) == [("HF201", 1)]


def test_a_comment_behind_a_long_call_counts_if_it_names_the_code() -> None:
    text = "x = f(\n  1,\n)  # noqa: HF201\n"
    assert left(text, at(1, end_line=3)) == []
    assert left(text.replace(": HF201", ""), at(1, end_line=3)) == [("HF201", 1)]


def test_a_string_is_no_comment() -> None:
    assert left("x = '# noqa'\n", at(1)) == [("HF201", 1)]


def test_a_whole_file_can_be_excused() -> None:
    assert left("# holdfast: noqa\nx = 1\ny = 2\n", at(2), at(3, "HF301")) == []
    text = "# holdfast: noqa: HF201, HF4\nx = 1\ny = 2  # noqa: HF4\n"
    assert left(text, at(2), at(3, "HF301"), at(3, "HF401")) == [("HF301", 3)]


def test_a_comment_for_the_file_stands_on_a_line_of_its_own() -> None:
    assert left("x = 1  # holdfast: noqa\ny = 2\n", at(2)) == [("HF201", 2)]


def test_a_comment_that_takes_nothing_back_is_reported() -> None:
    assert left("x = 1\n\ny = 2  # noqa: HF201, F401\n") == [("HF001", 3)]
    assert left("# holdfast: noqa: HF3\nx = 1\n", at(2)) == [("HF001", 1), ("HF201", 2)][::-1]


def test_of_a_rule_that_did_not_run_nobody_knows() -> None:
    assert left("x = 1  # noqa: HF201\n", run=False) == []


def test_a_bare_comment_may_be_for_another_tool() -> None:
    assert left("x = 1  # noqa\n") == []


def test_an_unused_comment_can_itself_be_excused() -> None:
    assert left("x = 1  # noqa: HF201, HF001\n") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: HF201\n", "x = 1\n"),
        ("x = 1  # noqa: HF201, F401\n", "x = 1  # noqa: F401\n"),
        ("x = 1  # noqa: HF201  # why\n", "x = 1    # why\n"),
        ("x = 1  # noqa: HF201 why\n", "x = 1  # why\n"),
        ("x = 1  # type: ignore  # noqa: HF201\n", "x = 1  # type: ignore\n"),
        ("# holdfast: noqa: HF201, HF3\nx\n", "# holdfast: noqa: HF3\nx\n"),
        ("x = 'ä'  # noqa: HF201\r\ny\r\n", "x = 'ä'\r\ny\r\n"),
    ],
)
def test_the_fix_takes_away_only_what_is_idle(before: str, after: str) -> None:
    used = [at(2, "HF301")] if "HF3," not in before and "HF3" in before else []
    found = sift("x.py", before, used, lambda code: True)
    assert mend_text(before, found)[0] == after
