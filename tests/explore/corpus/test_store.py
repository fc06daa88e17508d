"""The files of the corpus: bounded, and whatever they contain, nothing but numbers is read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.corpus import store
from handfast._explore.corpus.store import Corpus, CorpusFolder, Entry
from handfast._explore.search.plan import Cancel, Plan

GOOD: list[Any] = [1, 4, [7, [], []], [2, [[3, 1], [8, 2]], [[5, 1]]]]
CORPUS = Corpus(4, Entry(Plan(), 7), (Entry(Plan(((3, 1), (8, 2)), (Cancel(5, 1),)), 2),))
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes")


def only_file(root: Path) -> Path:
    (file,) = (root / ".handfast" / "corpus").iterdir()
    return file


def test_what_is_saved_is_loaded_under_the_same_key_only(tmp_path: Path) -> None:
    folder = CorpusFolder(tmp_path)
    assert folder.load("test_it") == Corpus()
    folder.save("test_it", CORPUS)
    assert json.loads(only_file(tmp_path).read_text()) == GOOD
    assert CorpusFolder(tmp_path).load("test_it") == CORPUS
    assert folder.load("test_other") == Corpus()
    folder.save("test_it", Corpus())
    assert not list((tmp_path / ".handfast" / "corpus").iterdir())
    assert "*" in (tmp_path / ".handfast" / ".gitignore").read_text().splitlines()


def changed(at: int, value: Any) -> str:
    return json.dumps([*GOOD[:at], value, *GOOD[at + 1 :]])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "7",
        "[]",
        "[" * 60_000,
        "\udc80",
        changed(0, 2),
        changed(1, -1),
        changed(1, "4"),
        changed(1, 2**31),
        changed(2, [7, [[1, 1]], []]),
        changed(2, "abc"),
        changed(3, [2, [[3, 1.0]], []]),
        changed(3, [2, [[3, True]], []]),
        changed(3, [2, [[3, 0]], []]),
        changed(3, [2, [[8, 1], [3, 1]], []]),
        changed(3, [2, [[3, 1], [3, 2]], []]),
        changed(3, [2, [[3, 1, 1]], []]),
        changed(3, [2, [], [[5, 1], [4, 1]]]),
        changed(3, [2, [[at, 1] for at in range(501)], []]),
        json.dumps([*GOOD[:3], *[[0, [[1, 1]], []]] * 33]),
        json.dumps(GOOD) + " " * 70_000,
    ],
)
def test_what_is_not_valid_is_ignored(tmp_path: Path, text: str) -> None:
    folder = CorpusFolder(tmp_path)
    folder.save("key", CORPUS)
    only_file(tmp_path).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert folder.load("key") == Corpus()
    folder.save("key", CORPUS)
    assert folder.load("key") == CORPUS


@POSIX
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_regular_file_is_ignored(tmp_path: Path, kind: str) -> None:
    folder = CorpusFolder(tmp_path)
    folder.save("key", CORPUS)
    file = only_file(tmp_path)
    elsewhere = tmp_path / "elsewhere.json"
    file.rename(elsewhere)
    before = elsewhere.read_bytes()
    if kind == "link":
        file.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    assert folder.load("key") == Corpus()
    folder.save("key", Corpus(9))
    assert elsewhere.read_bytes() == before
    assert folder.load("key") == (Corpus() if kind == "folder" else Corpus(9))
    # No temporary file is left where the file could not be written.
    assert len(list(file.parent.iterdir())) == 1


@POSIX
@pytest.mark.parametrize("link", [".handfast", ".handfast/corpus"])
def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(elsewhere)
    CorpusFolder(tmp_path).save("key", CORPUS)
    assert not list(elsewhere.iterdir())
    assert CorpusFolder(tmp_path).load("key") == Corpus()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".handfast").write_text("a file")
    CorpusFolder(tmp_path).save("key", CORPUS)
    assert (tmp_path / ".handfast").read_text() == "a file"


def test_files_and_their_size_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_FILES", 3)
    folder = CorpusFolder(tmp_path)
    for number in range(5):
        folder.save(f"test_{number}", CORPUS)
        os.utime(folder._path(f"test_{number}"), (number, number))
    (tmp_path / ".handfast" / "corpus" / "not ours").touch()
    folder.save("test_5", CORPUS)
    kept = [folder.load(f"test_{number}") == CORPUS for number in range(6)]
    assert kept == [False, False, False, True, True, True]
    assert (tmp_path / ".handfast" / "corpus" / "not ours").exists()


def test_schedules_that_are_too_long_are_not_kept(tmp_path: Path) -> None:
    folder = CorpusFolder(tmp_path)
    longest = Entry(Plan(tuple((at, 1) for at in range(501))))
    large = [
        Entry(Plan(tuple((at + 2_000_000_000, n + 1) for at in range(499)))) for n in range(40)
    ]
    folder.save("key", Corpus(1, Entry(Plan()), (longest, *large, CORPUS.entries[0])))
    kept = folder.load("key").entries
    assert longest not in kept
    assert 2 < len(kept) < 32
    assert folder._path("key").stat().st_size <= 65_536
