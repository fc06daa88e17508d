"""Fixes go in from the end, never overlap, and never leave a file that does not parse."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.check.finding import Edit, Finding, Fix, Place
from holdfast.check.fixing import diff, mend, mend_text, write


def fix(
    line: int, start: int, end: int, text: str, *, path: str = "x.py", safe: bool = True
) -> Finding:
    place = Place(path, line, start, line, end)
    return Finding("HF405", "wrong", place, fix=Fix("mend it", (Edit(place, text),), safe))


def test_edits_do_not_move_each_other() -> None:
    text = "a = 1\nb = 2; c = 3\n"
    after, fixed = mend_text(text, [fix(2, 5, 6, "22"), fix(1, 5, 6, "11"), fix(2, 12, 13, "33")])
    assert after == "a = 11\nb = 22; c = 33\n"
    assert len(fixed) == 3


def test_of_two_that_touch_the_same_the_first_wins() -> None:
    after, fixed = mend_text("abc = 1\n", [fix(1, 2, 4, "z"), fix(1, 1, 3, "y")])
    assert (after, len(fixed)) == ("yc = 1\n", 1)


def test_two_insertions_at_one_place_are_not_mixed() -> None:
    after, fixed = mend_text("a\n", [fix(1, 1, 1, "x"), fix(1, 1, 1, "y")])
    assert (after, len(fixed)) == ("xa\n", 1)


def test_neighbours_do_not_touch() -> None:
    after, _ = mend_text("ab = 1\n", [fix(1, 1, 2, "x"), fix(1, 2, 3, "y")])
    assert after == "xy = 1\n"


def test_a_fix_that_breaks_the_file_is_left_out_and_the_others_go_in() -> None:
    after, fixed = mend_text("a = 1\nb = 2\n", [fix(1, 5, 6, "(("), fix(2, 5, 6, "3")])
    assert (after, len(fixed)) == ("a = 1\nb = 3\n", 1)


@pytest.mark.parametrize("bad", [fix(9, 1, 2, "x"), fix(1, 1, 99, "x")])
def test_a_place_that_is_not_there_is_left_out(bad: Finding) -> None:
    assert mend_text("a = 1\n", [bad]) == ("a = 1\n", [])


def test_a_fix_of_another_file_is_left_out() -> None:
    place = Place("x.py", 1, 1, 1, 2)
    elsewhere = Edit(Place("y.py", 1, 1, 1, 2), "b")
    found = Finding("HF405", "wrong", place, fix=Fix("mend", (elsewhere,), True))
    assert mend_text("a\n", [found]) == ("a\n", [])


def test_unsafe_ones_are_for_those_who_ask(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    found = [fix(1, 5, 6, "2", path=str(path), safe=False)]
    assert mend(found) == []
    [mended] = mend(found, unsafe=True)
    assert mended.after == "a = 2\n"
    assert path.read_text() == "a = 1\n"


def test_a_file_keeps_its_encoding_its_line_ends_and_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\r\na = '\xe4'\r\nb = 1\r\n")
    path.chmod(0o750)
    [mended] = mend([fix(3, 5, 6, "2", path=str(path))])
    write(mended)
    assert path.read_bytes() == b"# -*- coding: latin-1 -*-\r\na = '\xe4'\r\nb = 2\r\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert sorted(each.name for each in tmp_path.iterdir()) == [".git", "x.py"]


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(b"\xef\xbb\xbfa = 1\n")
    write(mend([fix(1, 5, 6, "2", path=str(path))])[0])
    assert path.read_bytes() == b"\xef\xbb\xbfa = 2\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("a = 1\n")
    link = tmp_path / "link.py"
    link.symlink_to("real.py")
    write(mend([fix(1, 5, 6, "2", path=str(link))])[0])
    assert link.is_symlink()
    assert (tmp_path / "real.py").read_text() == "a = 2\n"


def test_a_file_that_is_gone_is_left_alone() -> None:
    assert mend([fix(1, 1, 1, "x", path="gone.py")]) == []


def test_the_diff_is_one_that_patch_understands(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1")
    told = diff(mend([fix(1, 5, 6, "2", path=str(path))])[0])
    assert told == (
        f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n"
        "-a = 1\n\\ No newline at end of file\n+a = 2\n\\ No newline at end of file\n"
    )
