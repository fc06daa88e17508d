"""Annotations that GitHub understands."""

from __future__ import annotations

from holdfast.check.finding import Finding, Place
from holdfast.check.output.github import github
from holdfast.check.report import Report
from tests.check.showing import FINDING


def test_one_command_for_each_finding() -> None:
    assert github(Report((FINDING,))) == (
        "::error file=src/bot.py,line=6,col=9,endColumn=29,endLine=6,title=holdfast (HF301)::"
        "src/bot.py:6:9: HF301 The session is cleared while the task still reads it%0A"
        "src/bot.py:3: the task is born here%0Asrc/other bot.py:1: and read here%0A"
        "show it: pytest -k close --holdfast\n"
    )


def test_what_would_end_a_field_is_escaped() -> None:
    finding = Finding("HF101", "50%\nof it", Place("a,b:c.py", 1, 2, 3, 4), pedantic=True)
    assert github(Report((finding,))) == (
        "::notice file=a%2Cb%3Ac.py,line=1,endLine=3,title=holdfast (HF101)::"
        "a,b:c.py:1:2: HF101 50%25%0Aof it\n"
    )
