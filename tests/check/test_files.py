"""Which files are checked, and that git's word counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.check.files import NoSuchPath, find
from holdfast.check.gitignore import Patterns


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_a_folder_means_its_python_files_in_order(here: Path) -> None:
    put(here, "b.py", "a/z.py", "a/x.py", "c.txt", "d.pyi", "n.ipynb")
    assert find(["."]).files == ["a/x.py", "a/z.py", "b.py"]


def test_a_file_that_is_named_twice_is_checked_once(here: Path) -> None:
    put(here, "a/x.py")
    assert find(["a/x.py", "a", str(here / "a")]).files == ["a/x.py"]


def test_a_file_that_is_named_needs_no_suffix(here: Path) -> None:
    put(here, "script")
    assert find(["script"]).files == ["script"]


def test_a_notebook_is_left_alone_even_if_it_is_named(here: Path) -> None:
    put(here, "n.ipynb")
    found = find(["n.ipynb"])
    assert (found.files, found.not_checked) == ([], ["n.ipynb"])


def test_environments_and_caches_are_not_entered_unless_they_are_named(here: Path) -> None:
    put(here, ".venv/a.py", "node_modules/b.py", "build/c.py", "src/d.py")
    assert find(["."]).files == ["src/d.py"]
    assert find(["build"]).files == ["build/c.py"]


def test_a_path_that_is_not_there_is_named(here: Path) -> None:
    with pytest.raises(NoSuchPath, match="no file or folder 'nowhere'"):
        find(["nowhere"])


def test_what_lies_outside_is_shown_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a/x.py", "b/y.py")
    monkeypatch.chdir(tmp_path / "b")
    assert find([str(tmp_path)]).files == [str(tmp_path / "a/x.py"), "y.py"]


def test_a_link_to_a_folder_is_not_followed(here: Path) -> None:
    put(here, "a/x.py")
    os.symlink(here, here / "a" / "loop")
    assert find(["."]).files == ["a/x.py"]


def test_a_folder_that_nobody_may_read_is_passed_by(here: Path) -> None:
    put(here, "a/x.py", "b.py")
    assert find(["."], lambda path, is_folder: path.endswith("/a")).files == ["b.py"]


PATTERNS = """
# a comment
*.gen.py
!keep.gen.py
/top.py
made/
docs/**/draft.py
**/deep/x.py
sp\\ ace.py
odd[0-9].py
not[!a].py
q?.py
under/**
\\#hash.py
\\!bang.py
"""
PATTERNS += "trailing.py   \n"
TREE = (
    "a.gen.py", "keep.gen.py", "top.py", "sub/top.py", "made/a.py", "sub/made/b.py",
    "docs/draft.py", "docs/x/y/draft.py", "draft.py", "a/deep/x.py", "deep/x.py", "sp ace.py",
    "odd1.py", "oddx.py", "nota.py", "notb.py", "qq.py", "qqq.py", "under/a/b.py", "#hash.py",
    "!bang.py", "trailing.py", "plain.py", "nested/one.py", "nested/two.py", "nested/a.gen.py",
)  # fmt: skip


def test_what_git_ignores_is_left_alone_as_git_sees_it(here: Path) -> None:
    put(here, *TREE)
    (here / ".gitignore").write_text(PATTERNS)
    (here / "nested" / ".gitignore").write_text("one.py\n!a.gen.py\n")
    subprocess.run(["git", "init", "-q"], check=True)
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert sorted(find(["."]).files) == sorted(each for each in told.split("\0") if each)


def test_a_gitignore_further_up_counts_for_a_folder_in_the_repository(here: Path) -> None:
    put(here, "a/b/x.py", "a/b/y.py", "a/b/z.py")
    (here / ".gitignore").write_text("/a/b/x.py\n")
    (here / "a" / ".gitignore").write_text("y.py\n")
    (here / ".git" / "info").mkdir(parents=True)
    assert find(["a/b"]).files == ["a/b/z.py"]
    (here / ".git" / "info" / "exclude").write_text("z.py\n")
    assert find(["a/b"]).files == []


def test_an_ignored_file_is_checked_if_it_is_named(here: Path) -> None:
    put(here, "x.py")
    (here / ".gitignore").write_text("x.py\n")
    assert find(["."]).files == []
    assert find(["x.py"]).files == ["x.py"]


def test_a_broken_pattern_matches_nothing() -> None:
    patterns = Patterns(["[z-a].py", "[.py", "/"])
    assert patterns.judge("a.py", is_folder=False) is None
