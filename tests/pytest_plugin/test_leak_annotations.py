"""Leaks in a CI: beside the line on GitHub, and in the JUnit file."""

from __future__ import annotations

import pytest

from holdfast.pytest_plugin.leak_annotations import Level, github_lines, on_github, properties
from tests.leaks.found import ROOT, a_leak


def test_annotations_are_for_workflows_of_github_alone() -> None:
    assert on_github({"GITHUB_ACTIONS": "true"})
    assert not on_github({"GITHUB_ACTIONS": "false"})
    assert not on_github({})


@pytest.mark.parametrize("level", ["error", "warning"])
def test_a_leak_is_shown_beside_the_line_where_it_was_born(level: Level) -> None:
    (line,) = github_lines([a_leak()], level, ROOT)
    head = f"::{level} file=src/bot.py,line=12,title=HF102 task-left-over::"
    assert line.startswith(head + "HF102 task-left-over: task 'poll' running Bot._poll%0A")
    assert "left by    tests/test_bot.py::test_start%0A" in line


def test_what_github_would_take_for_its_own_signs_is_escaped() -> None:
    leak = a_leak(what="50% of\r\n::error::", born="src/a,b%:c.py:1 in run")
    (line,) = github_lines([leak], "error", ROOT)
    assert line.startswith("::error file=src/a%2Cb%25%3Ac.py,line=1,title=")
    assert "50%25 of%0D%0A::error::" in line
    assert len(line.splitlines()) == 1


def test_each_origin_has_one_annotation_and_the_most_come_first() -> None:
    other = a_leak(born="src/wire.py:3 in read")
    lines = github_lines([other, *(a_leak() for _ in range(3))], "error", ROOT)
    assert ["file=src/bot.py" in line for line in lines] == [True, False]
    assert lines[0].endswith("%0A    and 2 more from this line")


@pytest.mark.parametrize("born", [None, "../elsewhere/bot.py:1 in run"])
def test_what_was_born_outside_the_repository_has_no_line(born: str | None) -> None:
    leak = a_leak(born=born)
    (line,) = github_lines([leak], "error", ROOT / "src")
    assert line.startswith("::error title=HF102 task-left-over::HF102 ")


def test_junit_gets_a_property_for_each_leak() -> None:
    assert properties([a_leak(), a_leak(born=None)]) == [
        (
            "holdfast.leak",
            "HF102 task-left-over: task 'poll' running Bot._poll, born src/bot.py:12 in Bot.start",
        ),
        (
            "holdfast.leak",
            "HF102 task-left-over: task 'poll' running Bot._poll, born at a place that nobody saw",
        ),
    ]
