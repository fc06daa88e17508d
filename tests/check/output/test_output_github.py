"""Annotations for GitHub Actions."""

from __future__ import annotations

from handfast._check.finding import Finding, Span
from handfast._check.output.github import github
from handfast._check.report import Report
from tests.check.sample_report import DROPPED, FINDING


def test_one_command_for_each_finding() -> None:
    assert github(Report((FINDING,))) == (
        "::error file=src/bot.py,line=6,col=9,endColumn=29,endLine=6,title=handfast (HF301)::"
        "src/bot.py:6:9: HF301 The session is cleared while the task still reads it%0A"
        "src/bot.py:3: the task is created here%0Asrc/other bot.py:1: and read here%0A"
        "more: handfast rule HF301\n"
    )


def test_separators_are_escaped() -> None:
    finding = Finding("HF101", "50%\nof it", Span("a,b:c.py", 1, 2, 3, 4), confidence="medium")
    assert github(Report((finding,))) == (
        "::notice file=a%2Cb%3Ac.py,line=1,endLine=3,title=handfast (HF101)::"
        "a,b:c.py:1:2: HF101 50%25%0Aof it%0Amore: handfast rule HF101\n"
    )


def test_each_place_of_one_cause_is_an_annotation() -> None:
    lines = [row.split("line=")[1][0] for row in github(DROPPED).splitlines()]
    assert lines == ["1", "2", "3", "4"]
