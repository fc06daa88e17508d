"""The formats with one line for each finding: concise and grouped."""

from __future__ import annotations

from handfast._check.output.concise import concise
from handfast._check.output.grouped import grouped
from handfast._check.report import Report
from tests.check.sample_report import REPORT

LAST = (
    "Found 2 problems, and 1 file not checked. "
    "1 fixable with --fix, 1 fixable with --unsafe-fixes (review with --diff first).\n"
)


def test_concise_has_a_line_for_each_finding() -> None:
    lines = (
        "src/bot.py:1:11: HF001 Unused noqa comment\n"
        "src/bot.py:6:9: HF301 The session is cleared while the task still reads it\n"
        "src/broken.py:7:1: HF000 syntax error: '(' was never closed\n"
    )
    assert concise(REPORT) == lines + LAST
    assert concise(REPORT, quiet=True) == lines


def test_grouped_has_a_block_for_each_file() -> None:
    blocks = (
        "src/bot.py:\n  1:11: HF001 Unused noqa comment\n"
        "  6:9: HF301 The session is cleared while the task still reads it\n\n"
        "src/broken.py:\n  7:1: HF000 syntax error: '(' was never closed\n\n"
    )
    assert grouped(REPORT) == blocks + LAST
    assert grouped(REPORT, quiet=True) == blocks


def test_no_findings_are_a_summary() -> None:
    assert concise(Report(paths=("a.py",))) == grouped(Report(paths=("a.py",)))
    assert concise(Report(paths=("a.py",))) == "All clear: 1 file checked.\n"
