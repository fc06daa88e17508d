"""The baseline: what is known is not told again, what is new is, and what is gone is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.leaks import Leak
from holdfast.leaks.baseline import BadBaseline, Baseline, Known, gone_in_words
from holdfast.leaks.place import Place
from tests.leaks.found import ROOT, a_leak


def test_what_was_written_is_known_afterwards_and_what_is_more_is_new(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "leaks.json"
    leaks = [a_leak(), a_leak(), a_leak("HF721"), a_leak(born=None)]
    Baseline.write(path, leaks, ROOT)
    baseline = Baseline.load(path, ROOT)
    assert baseline.sift(leaks[:2]) == []
    more, other = a_leak(), a_leak(owner="tests/test_bot.py::test_other")
    assert baseline.sift([leaks[2], more, leaks[3], other]) == [more, other]


def test_an_edit_above_the_line_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "leaks.json"
    Baseline.write(path, [a_leak(born="src/bot.py:12 in Bot.start")], ROOT)
    assert Baseline.load(path, ROOT).sift([a_leak(born="src/bot.py:99 in Bot.start")]) == []
    moved = a_leak(born="src/bot.py:12 in Bot.stop")
    assert Baseline.load(path, ROOT).sift([moved]) == [moved]


def test_the_file_has_one_sorted_line_for_each_entry(tmp_path: Path) -> None:
    leaks = [a_leak("HF721"), a_leak(owner="tests/a.py::test_ä"), a_leak("HF721")]
    Baseline.write(tmp_path / "one", leaks, ROOT)
    Baseline.write(tmp_path / "two", reversed(leaks), ROOT)
    text = (tmp_path / "one").read_text(encoding="utf-8")
    assert text == (tmp_path / "two").read_text(encoding="utf-8")
    place = '"file": "src/bot.py", "function": "Bot.start"'
    assert text.splitlines() == [
        '{"version": 1,',
        ' "leaks": [',
        f'  {{"owner": "tests/a.py::test_ä", "code": "HF102", {place}, "count": 1}},',
        f'  {{"owner": "tests/test_bot.py::test_start", "code": "HF721", {place}, "count": 2}}',
        " ]}",
    ]


def test_a_suite_without_leaks_has_an_empty_baseline(tmp_path: Path) -> None:
    path = tmp_path / "leaks.json"
    Baseline.write(path, [], ROOT)
    assert json.loads(path.read_text()) == {"version": 1, "leaks": []}
    assert Baseline.load(path).counts == {}


def test_writing_replaces_the_file_at_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leaks.json"
    Baseline.write(path, [a_leak()], ROOT)
    path.chmod(0o600)
    before, rights = path.read_text(), path.stat().st_mode

    def fails(*paths: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="disk full"):
        patched.setattr("os.replace", fails)
        Baseline.write(path, [], ROOT)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
    Baseline.write(path, [], ROOT)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode == rights


def test_entries_that_no_longer_occur_are_named(tmp_path: Path) -> None:
    leaks = [a_leak(), a_leak(), a_leak("HF721"), a_leak(owner="tests/b.py::test_b")]
    baseline = Baseline.write(tmp_path / "leaks.json", leaks, ROOT)
    assert baseline.gone(leaks) == ()
    gone = baseline.gone(leaks[:1])
    assert [(known.owner, known.code) for known in gone] == [
        ("tests/b.py::test_b", "HF102"),
        ("tests/test_bot.py::test_start", "HF721"),
    ]
    assert str(gone[1]) == (
        "HF721 born in src/bot.py, Bot.start, left by tests/test_bot.py::test_start"
    )
    assert "2 entries of the baseline no longer occur: write it anew" in gone_in_words(gone)
    assert "1 entry of the baseline no longer occurs: write it anew" in gone_in_words(gone[:1])
    assert gone_in_words(()) == ""


def test_what_did_not_run_is_not_gone(tmp_path: Path) -> None:
    leaks = [a_leak(), a_leak(owner="tests/b.py::test_b")]
    baseline = Baseline.write(tmp_path / "leaks.json", leaks, ROOT)
    gone = baseline.gone([], ran={"tests/b.py::test_b"})
    assert [known.owner for known in gone] == ["tests/b.py::test_b"]


@pytest.mark.parametrize(
    ("filename", "named"),
    [
        (str(ROOT / "src" / "bot.py"), "src/bot.py"),
        (str(ROOT / "venv" / "lib" / "python3.12" / "site-packages" / "a" / "b.py"), "a/b.py"),
        (str(ROOT.parent / "usr" / "lib" / "python3.13" / "queue.py"), "queue.py"),
        (str(ROOT.parent / "elsewhere.py"), (ROOT.parent / "elsewhere.py").as_posix()),
        ("<string>", "<string>"),
    ],
    ids=["own", "installed", "stdlib", "elsewhere", "no-file"],
)
def test_a_file_has_the_same_name_on_every_machine(filename: str, named: str) -> None:
    leak = Leak("HF102", "task", check="tasks", born=Place("", filename, 1, "run"))
    assert Known.of(leak, ROOT).file == named


def test_files_are_named_from_the_folder_of_the_baseline_if_nothing_else_is_said(
    tmp_path: Path,
) -> None:
    born = Place("", str(tmp_path / "src" / "bot.py"), 1, "run")
    leak = Leak("HF102", "task", check="tasks", owner="a", born=born)
    baseline = Baseline.write(tmp_path / "leaks.json", [leak])
    assert [known.file for known in baseline.counts] == ["src/bot.py"]
    assert Baseline.load(tmp_path / "leaks.json").sift([leak]) == []


ENTRY = '{"owner": "a", "code": "HF102", "file": "", "function": "", "count": 1}'
BROKEN = {
    "missing": (None, "there is no baseline at .*leaks.json: write it anew with --holdfast-write"),
    "cut": ("{", "leaks.json is broken: .*; write it anew"),
    "other": ("[]", "is no baseline of holdfast"),
    "empty": ('{"version": 1}', "is no baseline of holdfast .*leaks"),
    "older": ('{"version": 0, "leaks": []}', "is no baseline of holdfast .*version 0"),
    "newer": ('{"version": 2, "leaks": {}}', "has version 2, and this holdfast reads up to 1"),
    "no-list": ('{"version": 1, "leaks": 3}', "is no baseline of holdfast"),
    "no-entry": ('{"version": 1, "leaks": [3]}', "is no baseline of holdfast"),
    "no-owner": ('{"version": 1, "leaks": [{}]}', "is no baseline of holdfast .*owner"),
    "no-word": (
        f'{{"version": 1, "leaks": [{ENTRY.replace(chr(34) + "a" + chr(34), "1")}]}}',
        "entry",
    ),
    "none": (f'{{"version": 1, "leaks": [{ENTRY.replace("1}", "0}")}]}}', "count 0"),
    "a-bool": (f'{{"version": 1, "leaks": [{ENTRY.replace(": 1}", ": true}")}]}}', "count True"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_used_is_an_error_that_says_why(tmp_path: Path, name: str) -> None:
    path = tmp_path / "leaks.json"
    text, said = BROKEN[name]
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadBaseline, match=said):
        Baseline.load(path)


def test_a_folder_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(BadBaseline, match="cannot be read"):
        Baseline.load(tmp_path)
