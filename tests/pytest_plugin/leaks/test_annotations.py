"""Leaks in a CI: beside the line on GitHub, and in the JUnit file."""

from __future__ import annotations

import pytest

from handfast._github import Level
from handfast.pytest_plugin.leaks.reporting import github_lines, junit_properties
from tests.leaks.sample_leak import ROOT, a_leak


@pytest.mark.parametrize("level", ["error", "warning"])
def test_a_leak_is_shown_beside_the_line_that_created_it(level: Level) -> None:
    (line,) = github_lines([a_leak()], level, ROOT)
    head = f"::{level} file=src/bot.py,line=12,title=HF102 task-left-over::"
    assert line.startswith(head + "HF102 task-left-over: task 'poll' running Bot._poll%0A")
    assert "left by     tests/test_bot.py::test_start%0A" in line


def test_characters_with_a_meaning_in_workflow_commands_are_escaped() -> None:
    leak = a_leak(what="50% of\r\n::error::", created_at="src/a,b%:c.py:1 in run")
    (line,) = github_lines([leak], "error", ROOT)
    assert line.startswith("::error file=src/a%2Cb%25%3Ac.py,line=1,title=")
    assert "50%25 of%0D%0A::error::" in line
    assert len(line.splitlines()) == 1


def test_each_line_has_one_annotation_and_the_one_with_most_leaks_is_first() -> None:
    other = a_leak(created_at="src/wire.py:3 in read")
    lines = github_lines([other, *(a_leak() for _ in range(3))], "error", ROOT)
    assert ["file=src/bot.py" in line for line in lines] == [True, False]
    assert lines[0].endswith("%0A    and 2 more from this line")


@pytest.mark.parametrize("created_at", [None, "../elsewhere/bot.py:1 in run"])
def test_a_leak_created_outside_the_repository_has_no_line(created_at: str | None) -> None:
    leak = a_leak(created_at=created_at)
    (line,) = github_lines([leak], "error", ROOT / "src")
    assert line.startswith("::error title=HF102 task-left-over::HF102 ")


def test_junit_gets_a_property_for_each_leak() -> None:
    assert junit_properties([a_leak(), a_leak(created_at=None)]) == [
        (
            "handfast.leak",
            "HF102 task-left-over: task 'poll' running Bot._poll, created at src/bot.py:12 in Bot.start",
        ),
        (
            "handfast.leak",
            "HF102 task-left-over: task 'poll' running Bot._poll, created at an unknown line",
        ),
    ]
