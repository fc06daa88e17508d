"""What people read: one line for each finding, and the source with both places marked."""

from __future__ import annotations

from holdfast.catalogue import kind
from holdfast.check.finding import Finding, Place, Related
from holdfast.check.output.lines import Lines
from holdfast.check.output.statistics import statistics, statistics_json
from holdfast.check.output.text import summary, text
from holdfast.check.report import Report
from tests.check.showing import FINDING, REPORT, lines


def test_both_places_are_marked_in_the_source() -> None:
    told = text(Report((FINDING,)), lines)
    assert (
        told
        == """\
src/bot.py:6:9: HF301 The session is cleared while the task still reads it
  |
3 |         self._task = create_task(self._run())
  |                      ------------------------ the task is born here
...
6 |         self._session = None
  |         ^^^^^^^^^^^^^^^^^^^^
 ::: src/other bot.py:1:1
  |
1 | class Bot:
  | ---------- and read here
  |
  help: Cancel and join it first (--unsafe-fixes)
  show it: pytest -k close --holdfast

Found 1 problem. Of these, 1 with --unsafe-fixes: look at --diff first.
"""
    )


def test_a_file_that_was_not_checked_is_among_them() -> None:
    told = text(REPORT, lines)
    assert "src/broken.py:7:1: HF000 syntax error: '(' was never closed\n\n" in told
    assert told.endswith(
        "Found 2 problems, and 1 file not checked. "
        "Of these, 1 can be mended with --fix; 1 with --unsafe-fixes: look at --diff first.\n"
    )


def test_nothing_found_is_said_with_the_number_of_files() -> None:
    assert summary(Report(paths=("a.py",))) == "All clear: 1 file checked."
    assert text(Report(paths=tuple("ab" * 600)), lines) == "All clear: 1,200 files checked.\n"


def shown(source: str, *places: Place) -> list[str]:
    first, *others = places
    related = tuple(Related(each, "other") for each in others)
    told = text(Report((Finding("HF1", "m", first, related),)), lambda _: source.split("\n"))
    return told.split("\n")[1:-3]


def test_two_places_on_one_line_and_a_line_between() -> None:
    places = Place("x", 1, 1, 1, 3), Place("x", 1, 4, 1, 6), Place("x", 3, 1, 3, 3)
    assert shown("ab cd\nbetween\nef", *places) == [
        "  |", "1 | ab cd", "  | ^^", "  |    -- other", "2 | between", "3 | ef", "  | -- other", "  |",
    ]  # fmt: skip


def test_tabs_wide_letters_and_what_cannot_be_printed_keep_the_marks_in_place() -> None:
    assert shown("\t界\x1b = f()", Place("x", 1, 6, 1, 9)) == [
        "  |", "1 |     界\N{REPLACEMENT CHARACTER} = f()", "  |          ^^^", "  |",
    ]  # fmt: skip


def test_a_long_line_is_cut() -> None:
    row = shown("x" * 500, Place("x", 1, 1, 1, 400))
    assert len(row[1]) == len("1 | ") + 160
    assert len(row[2]) == len("  | ") + 160


def test_a_place_beyond_the_end_is_shown_as_empty() -> None:
    assert shown("a", Place("x", 9, 5, 9, 9))[1:3] == ["9 |", "  | ^"]


def test_colour_changes_no_word() -> None:
    import re

    coloured = text(REPORT, lines, colour=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == text(REPORT, lines)


def test_statistics_count_by_code() -> None:
    assert statistics(REPORT) == (
        "1  HF000  [ ]  file-not-checked\n1  HF001  [*]  noqa-unused\n"
        f"1  HF301  [ ]  {kind('HF301').name}\n"
    )
    assert statistics(Report()) == ""
    assert '"code": "HF301"' in statistics_json(REPORT)


def test_lines_of_a_file_that_is_not_there_are_none() -> None:
    assert Lines()("nowhere.py") == []
