"""Which files are checked, with and without git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from handfast._check.engine.discovery import NoSuchPath, find
from handfast._check.settings.path_patterns import PathPatterns


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_a_folder_gives_its_python_files_in_order(here: Path) -> None:
    put(here, "b.py", "a/z.py", "a/x.py", "c.txt", "d.pyi", "n.ipynb")
    assert find(["."]).files == ["a/x.py", "a/z.py", "b.py"]


def test_a_file_that_is_given_twice_is_checked_once(here: Path) -> None:
    put(here, "a/x.py")
    assert find(["a/x.py", "a", str(here / "a")]).files == ["a/x.py"]


def test_a_file_that_is_given_by_name_needs_no_suffix(here: Path) -> None:
    put(here, "script")
    assert find(["script"]).files == ["script"]


def test_a_notebook_is_not_checked_even_if_it_is_given_by_name(here: Path) -> None:
    put(here, "n.ipynb")
    found = find(["n.ipynb"])
    assert (found.files, found.not_checked) == ([], ["n.ipynb"])


def test_environments_and_caches_are_skipped_unless_given_by_name(here: Path) -> None:
    put(here, ".venv/a.py", "node_modules/b.py", "build/c.py", "src/d.py")
    assert find(["."]).files == ["src/d.py"]
    assert find(["build"]).files == ["build/c.py"]


def test_a_missing_path_is_an_error(here: Path) -> None:
    with pytest.raises(NoSuchPath, match="no file or folder 'nowhere'"):
        find(["nowhere"])


def test_files_outside_the_current_folder_have_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a/x.py", "b/y.py")
    monkeypatch.chdir(tmp_path / "b")
    assert find([str(tmp_path)]).files == [str(tmp_path / "a/x.py"), "y.py"]


def test_a_symbolic_link_to_a_folder_is_not_followed(here: Path) -> None:
    put(here, "a/x.py")
    os.symlink(here, here / "a" / "loop")
    assert find(["."]).files == ["a/x.py"]


def test_an_excluded_folder_is_skipped(here: Path) -> None:
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


@pytest.fixture
def git_repo(here: Path) -> Path:
    """A real repository in the place of the empty `.git` folder of the other tests."""
    git(here, "init", "-q")
    return here


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_ignored_files_are_those_of_git(git_repo: Path) -> None:
    put(git_repo, *TREE)
    (git_repo / ".gitignore").write_text(PATTERNS)
    (git_repo / "nested" / ".gitignore").write_text("one.py\n!a.gen.py\n")
    listed = git(git_repo, "ls-files", "-z", "-co", "--exclude-standard", "*.py")
    assert sorted(find(["."]).files) == sorted(each for each in listed.split("\0") if each)


def test_a_gitignore_above_the_given_folder_is_used(git_repo: Path) -> None:
    put(git_repo, "a/b/x.py", "a/b/y.py", "a/b/z.py")
    (git_repo / ".gitignore").write_text("/a/b/x.py\n")
    (git_repo / "a" / ".gitignore").write_text("y.py\n")
    assert find(["a/b"]).files == ["a/b/z.py"]
    (git_repo / ".git" / "info" / "exclude").write_text("z.py\n")
    assert find(["a/b"]).files == []


def test_ignored_files_and_folders_are_checked_if_given_by_name(git_repo: Path) -> None:
    put(git_repo, "x.py", "out/y.py", "out/deep/z.py")
    (git_repo / ".gitignore").write_text("x.py\nout/\n")
    assert find(["."]).files == []
    assert find(["x.py"]).files == ["x.py"]
    assert find(["out"]).files == ["out/deep/z.py", "out/y.py"]


def test_a_tracked_file_is_checked_even_if_a_pattern_matches_it(git_repo: Path) -> None:
    put(git_repo, "x.py", "y.py")
    (git_repo / ".gitignore").write_text("*.py\n")
    git(git_repo, "add", "-f", "x.py")
    assert find(["."]).files == ["x.py"]


def test_a_tracked_file_that_was_removed_is_skipped(git_repo: Path) -> None:
    put(git_repo, "x.py", "y.py")
    git(git_repo, "add", "x.py", "y.py")
    (git_repo / "x.py").unlink()
    assert find(["."]).files == ["y.py"]


def test_other_repositories_inside_have_their_own_gitignore(git_repo: Path) -> None:
    put(git_repo, "a.py", "lib/b.py", "lib/made/c.py", "copy/inner/d.py")
    (git_repo / ".gitignore").write_text("copy/\n")
    (git_repo / "lib" / ".gitignore").write_text("made/\n")
    for folder in ("lib", "copy/inner"):
        git(git_repo / folder, "init", "-q")
    found = find(["."])
    assert found.files == ["a.py", "lib/b.py"]
    assert find(["lib"], listings=found.listings).files == ["lib/b.py"]


def test_submodules_are_checked(git_repo: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    origin = tmp_path_factory.mktemp("origin")
    put(origin, "b.py", "deep/c.py")
    git(origin, "init", "-q")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "first")
    git(git_repo, "submodule", "--quiet", "add", str(origin), "vendor/lib")
    put(git_repo, "vendor/lib/new.py")
    assert find(["."]).files == ["vendor/lib/b.py", "vendor/lib/deep/c.py", "vendor/lib/new.py"]
    assert find(["vendor/lib/deep"]).files == ["vendor/lib/deep/c.py"]


def test_variables_of_a_git_hook_have_no_effect(
    git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(git_repo, "x.py", "y.py")
    (git_repo / ".gitignore").write_text("y.py\n")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert find(["."]).files == ["x.py"]


def test_git_is_not_started_again_for_a_folder_that_is_listed(
    git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(git_repo, "a/x.py", "a/y.py")
    (git_repo / ".gitignore").write_text("y.py\n")
    listings = find(["."]).listings
    monkeypatch.setenv("PATH", "")
    assert find(["a"], listings=listings).files == ["a/x.py"]


def test_without_git_all_files_are_checked(git_repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(git_repo, "x.py")
    (git_repo / ".gitignore").write_text("x.py\n")
    monkeypatch.setenv("PATH", "")
    assert find(["."]).files == ["x.py"]


def test_a_folder_without_a_repository(here: Path) -> None:
    put(here, "a/x.py")
    (here / ".git").rmdir()
    assert find(["."]).files == ["a/x.py"]


def test_settings_of_a_repository_start_no_program(git_repo: Path) -> None:
    put(git_repo, "x.py")
    git(git_repo, "config", "core.fsmonitor", "touch started; false")
    assert find(["."]).files == ["x.py"]
    assert not (git_repo / "started").exists()


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.gen.py", "a/b.gen.py", "gen.py"),
        ("/top.py", "top.py", "a/top.py"),
        ("a/b.py", "a/b.py", "c/a/b.py"),
        ("made/", "a/made/b.py", "made"),
        ("docs/**/draft.py", "docs/x/y/draft.py", "draft.py"),
        ("docs/**/draft.py", "docs/draft.py", "docs/x.py"),
        ("**/deep/x.py", "a/b/deep/x.py", "deep/a/x.py"),
        ("under/**", "under/a/b.py", "under"),
        ("tests/*", "tests/a/b.py", "a/tests/b.py"),
        ("odd[0-9].py", "odd1.py", "oddx.py"),
        ("not[!a].py", "notb.py", "nota.py"),
        ("q?.py", "qq.py", "qqq.py"),
    ],
)
def test_patterns_of_the_settings(pattern: str, matching: str, other: str) -> None:
    patterns = PathPatterns([pattern])
    assert patterns.covers(matching)
    assert not patterns.covers(other)


def test_the_last_pattern_decides() -> None:
    patterns = PathPatterns(["*.gen.py", "!keep.gen.py"])
    assert patterns.match("a.gen.py")
    assert not patterns.match("keep.gen.py")


def test_a_broken_pattern_matches_nothing() -> None:
    assert not PathPatterns(["[z-a].py", "[.py", "/", " "]).match("a.py")


def test_a_pattern_with_many_stars_does_not_backtrack() -> None:
    # Attack 15: with backtracking this would not end.
    pattern = PathPatterns(["/".join(["**", "a"] * 20) + "/b"])
    assert not pattern.match("a/" * 200 + "c")
    assert pattern.match("a/" * 200 + "b")


@pytest.mark.parametrize(("path", "matches"), [("a", False), ("a/b", True), ("a/b/c", True)])
def test_two_stars_at_the_end_match_what_is_in_the_folder(path: str, matches: bool) -> None:
    assert PathPatterns(["a/**"]).match(path) is matches


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_gitignore_does_not_block(
    git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Attack 16: git opens it, and waits for a writer.
    monkeypatch.setattr("handfast._check.engine.discovery._GIT_SECONDS", 0.1)
    (git_repo / "x.py").touch()
    (git_repo / ".gitignore").unlink(missing_ok=True)
    os.mkfifo(git_repo / ".gitignore")
    assert str(git_repo / "x.py") in [os.path.abspath(each) for each in find([str(git_repo)]).files]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_devices_and_loops_are_skipped(here: Path) -> None:
    os.mkfifo("pipe.py")
    os.symlink("/dev/zero", "zero.py")
    os.symlink("loop.py", "loop.py")
    os.symlink(".", "again")
    Path("folder.py").mkdir()
    assert not {"pipe.py", "zero.py", "loop.py", "folder.py"} & {*find(["."]).files}
    assert not any("again" in each for each in find(["."]).files)
