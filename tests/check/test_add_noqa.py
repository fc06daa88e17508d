"""`--add-noqa`: comments suppress the findings and change nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast._check.add_noqa import add_noqa
from handfast._check.engine.engine import check
from handfast._check.finding import Finding, Span
from handfast._check.fixes.apply_fixes import write
from handfast._check.report import Report
from tests.check.tiny_rules import RULE


def found(path: Path) -> Report:
    return check([path], rules=[RULE])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("drop(1)\n", "drop(1)  # noqa: HF101\n"),
        ("drop(1)  \r\n", "drop(1)  # noqa: HF101\r\n"),
        ("drop(1); drop(2)", "drop(1); drop(2)  # noqa: HF101"),
        ("drop(1)  # why\n", "drop(1)  # why  # noqa: HF101\n"),
        ("drop(1)  # noqa: E501 why\n", "drop(1)  # noqa: E501, HF101 why\n"),
        ("drop('''\n''')\n", "drop('''\n''')  # noqa: HF101\n"),
        ("drop(1) \\\n  .x\n", "drop(1) \\\n  .x\n"),
        ("drop(\n 1)\n", "drop(  # noqa: HF101\n 1)\n"),
    ],
)
def test_a_comment_is_added_where_it_is_possible(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(b"import asyncio\n" + before.encode())
    report = found(path)
    files, left = add_noqa(report.findings, report.texts)
    for each in files:
        write(each)
    assert path.read_bytes() == b"import asyncio\n" + after.encode()
    assert len(left) == (before == after)
    assert len(found(path).findings) == len(left)


def test_codes_of_one_line_share_a_comment_and_unused_comments_get_none() -> None:
    places = Span("x.py", 1, 1, 1, 2), Span("x.py", 1, 2, 1, 3)
    findings = [
        Finding(code, "m", place) for code in ("HF301", "HF201", "HF001") for place in places
    ]
    [file], left = add_noqa(findings, {"x.py": "a\n"})
    assert (file.after, len(file.fixed), left) == ("a  # noqa: HF201, HF301\n", 4, [])


def test_a_program_that_cannot_be_compared_gets_no_comment() -> None:
    finding = Finding("HF101", "m", Span("x.py", 1, 1, 1, 2))
    for deep in ("-" * 50_000 + "1\n", "(\n"):
        assert add_noqa([finding], {"x.py": deep}) == ([], [finding])
