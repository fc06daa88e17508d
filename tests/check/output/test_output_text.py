"""The text format: one line for each finding, and the source with its places marked."""

from __future__ import annotations

from dataclasses import replace

from handfast._check.finding import Finding, Related, Span
from handfast._check.output import FORMATS, page_url, render
from handfast._check.output.text import Lines, summary, text
from handfast._check.report import FileError, Report
from handfast._check.statistics import statistics, statistics_json
from handfast.catalogue import kind
from tests.check.sample_report import DROPPED, FINDING, REPORT, lines


def test_both_places_are_marked_in_the_source() -> None:
    shown_text = text(Report((FINDING,)), lines)
    assert (
        shown_text
        == """\
src/bot.py:6:9: HF301 The session is cleared while the task still reads it
  |
3 |         self._task = create_task(self._run())
  |                      ------------------------ the task is created here
...
6 |         self._session = None
  |         ^^^^^^^^^^^^^^^^^^^^
 ::: src/other bot.py:1:1
  |
1 | class Bot:
  | ---------- and read here
  |
  help: Cancel and join it first (--unsafe-fixes)

Found 1 problem. 1 fixable with --unsafe-fixes (review with --diff first).
"""
    )


def test_findings_of_one_cause_are_one_block_and_concise_lists_them() -> None:
    shown_text = text(DROPPED, lambda _: [])
    assert shown_text.endswith("Found 2 problems in 4 places.\n")
    first, second, _ = shown_text.split("\n\n")
    assert "pkg/a.py:1:1: HF101 drops `1`" in first
    assert "  also: the same in 2 more places:\n    pkg/a.py:2:1\n    pkg/a.py:3:1" in first
    assert second.endswith("  note: medium confidence; harm: lost work")
    rows = render(DROPPED, "concise", version="1").splitlines()
    assert [row.split()[0] for row in rows[:-1]] == [f"pkg/a.py:{line}:1:" for line in (1, 2, 3, 4)]


def test_only_the_first_of_many_places_are_listed() -> None:
    many = Report(
        tuple(replace(DROPPED.findings[0], place=Span("a.py", at, 1, at, 2)) for at in range(1, 9))
    )
    shown_text = text(many, lambda _: [])
    assert shown_text.count("\n    a.py:") == 5
    assert "\n    and 2 more places, which --output-format concise lists\n" in shown_text


def test_a_file_that_was_not_checked_is_listed() -> None:
    shown_text = text(REPORT, lines)
    assert "src/broken.py:7:1: HF000 syntax error: '(' was never closed\n\n" in shown_text
    assert shown_text.endswith(
        "Found 2 problems, and 1 file not checked. "
        "1 fixable with --fix, 1 fixable with --unsafe-fixes (review with --diff first).\n"
    )


def test_a_clean_report_has_the_number_of_files() -> None:
    assert summary(Report(paths=("a.py",))) == "All clear: 1 file checked."
    assert text(Report(paths=tuple("ab" * 600)), lines) == "All clear: 1,200 files checked.\n"
    assert text(Report(paths=("a.py",)), lines, quiet=True) == ""


def test_a_clean_report_says_what_was_looked_at_and_what_is_hidden() -> None:
    report = Report(paths=("a.py",), functions=1_200, creations=1, hidden=3)
    assert summary(report) == (
        "All clear: 1 file checked: 1,200 functions, 1 task creation. "
        "--pedantic would add 3 findings."
    )


def test_files_that_need_a_newer_python_are_one_finding() -> None:
    errors = [
        FileError(f"{number}.py", 7, "syntax error", python=f"3.{number}") for number in (99, 101)
    ]
    shown = text(Report((), (*errors, FileError("z.py", 1, "broken"))), lines)
    assert shown.split("\n")[1] == ""
    assert "101.py:7:1: HF000 2 files were not checked, this one and others: Python 3." in shown
    assert "run handfast with Python 3.101\n" in shown
    assert shown.endswith("Found 0 problems, and 3 files not checked.\n")
    assert "syntax error" in text(Report((), (errors[0],)), lines)


def test_a_file_name_is_no_command_of_the_terminal_or_of_github() -> None:
    # Attack "ugly": a newline and `::error` in a name began a line of the output.
    name = "a\n::error::b\x1b[2J.py"
    other = Related(Span(f"{name}2", 1, 1, 1, 2), "here\n::error::")
    finding = Finding("HF101", "m\n::error::c", Span(name, 1, 1, 1, 2), (other,))
    for form in FORMATS:
        shown = render(Report((finding,)), form, version="1")
        assert "\x1b" not in shown, form
        assert "\n::error::" not in shown, form


def shown(source: str, *places: Span) -> list[str]:
    first, *others = places
    related = tuple(Related(each, "other") for each in others)
    shown_text = text(Report((Finding("HF1", "m", first, related),)), lambda _: source.split("\n"))
    return shown_text.split("\n")[1:-3]


def test_two_places_on_one_line_and_a_line_between() -> None:
    places = Span("x", 1, 1, 1, 3), Span("x", 1, 4, 1, 6), Span("x", 3, 1, 3, 3)
    assert shown("ab cd\nbetween\nef", *places) == [
        "  |", "1 | ab cd", "  | ^^", "  |    -- other", "2 | between", "3 | ef", "  | -- other", "  |",
    ]  # fmt: skip


def test_marks_are_aligned_below_tabs_wide_letters_and_control_characters() -> None:
    assert shown("\t界\x1b = f()", Span("x", 1, 6, 1, 9)) == [
        "  |", "1 |     界\N{REPLACEMENT CHARACTER} = f()", "  |          ^^^", "  |",
    ]  # fmt: skip


def test_a_long_line_is_cut() -> None:
    row = shown("x" * 500, Span("x", 1, 1, 1, 400))
    assert len(row[1]) == len("1 | ") + 160
    assert len(row[2]) == len("  | ") + 160


def test_a_place_after_the_end_of_the_file_is_an_empty_line() -> None:
    assert shown("a", Span("x", 9, 5, 9, 9))[1:3] == ["9 |", "  | ^"]


def test_colour_changes_no_text() -> None:
    import re

    coloured = text(REPORT, lines, colour=True)
    assert "\x1b[" in coloured
    assert f"\x1b]8;;{page_url('HF301')}\x1b\\" in coloured
    assert re.sub(r"\x1b\[[\d;]*m|\x1b\]8;;.*?\x1b\\", "", coloured) == text(REPORT, lines)


def test_statistics_count_by_code() -> None:
    assert statistics(REPORT) == (
        "1  HF000  [ ]  file-not-checked\n1  HF001  [*]  noqa-unused\n"
        f"1  HF301  [ ]  {kind('HF301').name}\n"
    )
    assert statistics(Report()) == ""
    assert '"code": "HF301"' in statistics_json(REPORT)


def test_a_missing_file_has_no_lines() -> None:
    assert Lines()("nowhere.py") == []
