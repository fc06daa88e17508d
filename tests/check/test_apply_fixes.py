"""Fixes do not overlap, and never leave a file that does not parse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handfast._check.finding import Edit, Finding, Fix, Span
from handfast._check.fixes.apply_fixes import FixedFile, apply_fixes, diff, fix_text, write
from handfast._check.source import decoded


def fix(
    line: int, start: int, end: int, text: str, *, path: str = "x.py", safe: bool = True
) -> Finding:
    place = Span(path, line, start, line, end)
    return Finding("HF405", "wrong", place, fix=Fix("fix it", (Edit(place, text),), safe))


def texts(*paths: Path) -> dict[str, str]:
    """The files as a check has read them."""
    return {str(path): decoded(str(path), path.read_bytes()) for path in paths}


def fixed(path: Path, *findings: Finding) -> FixedFile:
    found = findings or [fix(1, 5, 6, "2", path=str(path))]
    [each] = apply_fixes(found, texts(path), unsafe=True)
    return each


def test_edits_do_not_move_each_other() -> None:
    text = "a = 1\nb = 2; c = 3\n"
    after, fixed = fix_text(text, [fix(2, 5, 6, "22"), fix(1, 5, 6, "11"), fix(2, 12, 13, "33")])
    assert after == "a = 11\nb = 22; c = 33\n"
    assert len(fixed) == 3


def test_of_two_overlapping_fixes_the_first_is_applied() -> None:
    after, fixed = fix_text("abc = 1\n", [fix(1, 2, 4, "z"), fix(1, 1, 3, "y")])
    assert (after, len(fixed)) == ("yc = 1\n", 1)


def test_only_one_of_two_insertions_at_one_place_is_applied() -> None:
    after, fixed = fix_text("a\n", [fix(1, 1, 1, "x"), fix(1, 1, 1, "y")])
    assert (after, len(fixed)) == ("xa\n", 1)


def test_adjacent_edits_do_not_overlap() -> None:
    after, _ = fix_text("ab = 1\n", [fix(1, 1, 2, "x"), fix(1, 2, 3, "y")])
    assert after == "xy = 1\n"


def test_a_fix_that_breaks_the_file_is_left_out_and_the_others_are_applied() -> None:
    after, fixed = fix_text("a = 1\nb = 2\n", [fix(1, 5, 6, "(("), fix(2, 5, 6, "3")])
    assert (after, len(fixed)) == ("a = 1\nb = 3\n", 1)


@pytest.mark.parametrize("bad", [fix(9, 1, 2, "x"), fix(1, 1, 99, "x")])
def test_a_fix_outside_the_file_is_left_out(bad: Finding) -> None:
    assert fix_text("a = 1\n", [bad]) == ("a = 1\n", [])


def test_a_fix_of_another_file_is_left_out() -> None:
    place = Span("x.py", 1, 1, 1, 2)
    elsewhere = Edit(Span("y.py", 1, 1, 1, 2), "b")
    found = Finding("HF405", "wrong", place, fix=Fix("fix", (elsewhere,), True))
    assert fix_text("a\n", [found]) == ("a\n", [])


def test_unsafe_fixes_are_applied_on_request(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    found = [fix(1, 5, 6, "2", path=str(path), safe=False)]
    assert apply_fixes(found, texts(path)) == []
    assert fixed(path, *found).after == "a = 2\n"
    assert path.read_text() == "a = 1\n"


def test_a_file_keeps_its_encoding_line_endings_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\r\na = '\xe4'\r\nb = 1\r\n")
    path.chmod(0o750)
    write(fixed(path, fix(3, 5, 6, "2", path=str(path))))
    assert path.read_bytes() == b"# -*- coding: latin-1 -*-\r\na = '\xe4'\r\nb = 2\r\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert sorted(each.name for each in tmp_path.iterdir()) == [".git", "x.py"]


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(b"\xef\xbb\xbfa = 1\n")
    write(fixed(path))
    assert path.read_bytes() == b"\xef\xbb\xbfa = 2\n"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("a = 1\n")
    link = tmp_path / "link.py"
    link.symlink_to("real.py")
    write(fixed(link))
    assert link.is_symlink()
    assert (tmp_path / "real.py").read_text() == "a = 2\n"


def test_a_file_that_was_not_read_is_skipped() -> None:
    assert apply_fixes([fix(1, 1, 1, "x", path="gone.py")], {}) == []


@pytest.mark.parametrize("now", [b"x = 0\n", b"\xff", None])
def test_a_file_that_has_changed_since_it_was_checked_is_not_written(
    tmp_path: Path, now: bytes | None
) -> None:
    # Attack 1: the edits went into whatever the file had then.
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    change = fixed(path)
    path.unlink()
    if now is not None:
        path.write_bytes(now)
    with pytest.raises(OSError, match=r"changed since it was checked|No such file"):
        write(change)
    assert (path.read_bytes() if path.exists() else None) == now


def test_a_change_while_the_new_text_is_written_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Attack 1: the last look is just before the file is replaced.
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    change = fixed(path)
    chmod = os.fchmod

    def save_meanwhile(target: int, mode: int) -> None:
        chmod(target, mode)
        path.write_text("saved\n")

    monkeypatch.setattr(os, "fchmod", save_meanwhile)
    with pytest.raises(OSError, match="changed since it was checked"):
        write(change)
    assert path.read_text() == "saved\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == [".git", "x.py"]


KILLED = """
import os
from handfast._check.fixes.apply_fixes import FixedFile, write
os.fchmod = lambda *_: os._exit(9)  # the new text is written, and the file not yet replaced
write(FixedFile("x.py", "a = 1\\n", "a = 2\\n", ()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs files without a name")
def test_a_process_that_is_killed_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Attack "ugly": 15 of 24 kills left `.x.py.*` beside the file.
    monkeypatch.chdir(tmp_path)
    Path("x.py").write_text("a = 1\n")
    assert subprocess.run([sys.executable, "-c", KILLED], timeout=60).returncode == 9
    assert sorted(os.listdir()) == [".git", "x.py"]
    assert Path("x.py").read_text() == "a = 1\n"


@pytest.mark.parametrize("name", ["sys.platform", "os.O_TMPFILE"])
def test_a_file_system_without_files_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    change = fixed(path)
    with monkeypatch.context() as context:
        context.setattr(name, os.O_CREAT | os.O_EXCL if "os" in name else "other", raising=False)
        write(change)
    assert path.read_text() == "a = 2\n"
    assert sorted(os.listdir(tmp_path)) == [".git", "x.py"]


def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    # Attack 4, as the next two.
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    change = fixed(path)
    path.chmod(0o444)
    with pytest.raises(OSError, match="read-only"):
        write(change)
    assert path.read_text() == "a = 1\n"


def test_a_file_with_several_hard_links_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1\n")
    os.link(path, tmp_path / "y.py")
    with pytest.raises(OSError, match="several hard links"):
        write(fixed(path))
    assert path.samefile(tmp_path / "y.py")


def test_a_link_out_of_the_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    outside = tmp_path / "outside.py"
    outside.write_text("a = 1\n")
    link = tmp_path / "inside" / "link.py"
    link.symlink_to(outside)
    with pytest.raises(OSError, match="outside of this folder"):
        write(fixed(link))
    assert outside.read_text() == "a = 1\n"


def test_a_text_that_its_encoding_does_not_have_is_not_written(tmp_path: Path) -> None:
    # Attack 18: `idna` decodes what it does not encode.
    path = tmp_path / "x.py"
    path.write_bytes(b"# coding: idna\na = 1\n")
    before = path.read_bytes()
    change = FixedFile(str(path), texts(path)[str(path)], "a = " + "1" * 99, ())
    with pytest.raises(OSError, match="label"):
        write(change)
    assert path.read_bytes() == before


def test_the_diff_splits_lines_as_patch_does(tmp_path: Path) -> None:
    # Attack 10: `splitlines` splits at these characters, too.
    path = tmp_path / "x.py"
    path.write_text("a = 1\nb = '\x0c\x1c\x85\u2028'\n", encoding="utf-8")
    assert diff(fixed(path)).decode() == (
        f"--- a{path}\n+++ b{path}\n@@ -1,2 +1,2 @@\n-a = 1\n+a = 2\n b = '\x0c\x1c\x85\u2028'\n"
    )


def test_the_diff_marks_a_missing_newline_as_patch_expects(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a = 1")
    shown = diff(fixed(path))
    assert shown.decode() == (
        f"--- a{path}\n+++ b{path}\n@@ -1 +1 @@\n"
        "-a = 1\n\\ No newline at end of file\n+a = 2\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, b"a = 1\nb = 2\n") for name in ("a b.py", "l\n\x1b\udcff.py", 'q"\\.py', "é.py")),
        ("sub/x.py", b"a = 1\r\nb = 2\r\n"),
        ("x.py", b"\xef\xbb\xbfa = 1\n"),
        ("x.py", b"# coding: latin-1\na = 1 # \xe4\n"),
        ("x.py", b"a = 1 # \x0c\x1c\xc2\x85\xe2\x80\xa8"),
    ],
)
def test_git_applies_the_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    line = content[: content.index(b"a =")].count(b"\n") + 1
    patch = diff(fixed(path, fix(line, 5, 6, "2", path=name)))
    subprocess.run(["git", "apply", "-"], input=patch, check=True, timeout=60)
    assert path.read_bytes() == content.replace(b"a = 1", b"a = 2")
