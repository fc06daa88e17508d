"""The baseline of leaks: only new leaks are reported, and entries that no longer occur are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handfast._baseline import BadBaseline
from handfast._leaks.baseline import FILE, gone, key, load, write
from handfast._leaks.leak import CodeLine
from handfast.leaks import Leak
from tests.leaks.sample_leak import ROOT, a_leak


def test_what_was_written_is_known_and_more_of_it_is_new(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "leaks.json"
    leaks = [a_leak(), a_leak(), a_leak("HF721"), a_leak(created_at=None)]
    write(path, leaks, ROOT)
    baseline = load(path, ROOT)
    assert baseline.new(leaks[:2]) == []
    more, other = a_leak(), a_leak(owner="tests/test_bot.py::test_other")
    assert baseline.new([leaks[2], more, leaks[3], other]) == [more, other]


def test_an_edit_above_the_line_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "leaks.json"
    write(path, [a_leak(created_at="src/bot.py:12 in Bot.start")], ROOT)
    assert load(path, ROOT).new([a_leak(created_at="src/bot.py:99 in Bot.start")]) == []
    moved = a_leak(created_at="src/bot.py:12 in Bot.stop")
    assert load(path, ROOT).new([moved]) == [moved]


def test_the_file_has_one_sorted_line_for_each_entry(tmp_path: Path) -> None:
    leaks = [a_leak("HF721"), a_leak(owner="tests/a.py::test_ä"), a_leak("HF721")]
    write(tmp_path / "one", leaks, ROOT)
    write(tmp_path / "two", reversed(leaks), ROOT)
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
    write(path, [], ROOT)
    assert json.loads(path.read_text()) == {"version": 1, "leaks": []}
    assert load(path).counts == {}


def test_writing_replaces_the_file_at_once_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leaks.json"
    write(path, [a_leak()], ROOT)
    path.chmod(0o600)
    before, rights = path.read_text(), path.stat().st_mode

    def fails(*paths: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="disk full"):
        patched.setattr("os.replace", fails)
        write(path, [], ROOT)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
    write(path, [], ROOT)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode == rights


def test_entries_that_no_longer_occur_are_counted(tmp_path: Path) -> None:
    leaks = [a_leak(), a_leak(), a_leak("HF721"), a_leak(owner="tests/b.py::test_b")]
    baseline = write(tmp_path / "leaks.json", leaks, ROOT)
    baseline.new(leaks[:1])  # one of two: the entry still occurs
    assert gone(baseline) == 2
    baseline.new(leaks[1:])
    assert gone(baseline) == 0
    assert "2 entries of the baseline no longer occur: rewrite it" in FILE.gone_text(2)
    assert "1 entry of the baseline no longer occurs: rewrite it" in FILE.gone_text(1)
    assert FILE.gone_text(0) == ""


def test_what_did_not_run_is_not_gone(tmp_path: Path) -> None:
    leaks = [a_leak(), a_leak(owner="tests/b.py::test_b")]
    baseline = write(tmp_path / "leaks.json", leaks, ROOT)
    assert gone(baseline, ran={"tests/b.py::test_b"}) == 1
    assert gone(baseline, ran=set()) == 0


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
    leak = Leak("HF102", "task", check="tasks", created_at=CodeLine("", filename, 1, "run"))
    assert key(leak, ROOT).file == named


def test_files_are_named_from_the_folder_of_the_baseline_if_nothing_else_is_said(
    tmp_path: Path,
) -> None:
    line = CodeLine("", str(tmp_path / "src" / "bot.py"), 1, "run")
    leak = Leak("HF102", "task", check="tasks", owner="a", created_at=line)
    baseline = write(tmp_path / "leaks.json", [leak])
    assert [entry[2] for entry in baseline.counts] == ["src/bot.py"]
    assert load(tmp_path / "leaks.json").new([leak]) == []


ENTRY = '{"owner": "a", "code": "HF102", "file": "", "function": "", "count": 1}'
BROKEN = {
    "missing": (None, "there is no baseline at .*leaks.json: rewrite it with --handfast-write"),
    "cut": ("{", "leaks.json is broken: .*; rewrite it"),
    "other": ("[]", "is no baseline of handfast"),
    "empty": ('{"version": 1}', "is no baseline of handfast .*leaks"),
    "older": ('{"version": 0, "leaks": []}', "is no baseline of handfast .*version 0"),
    "newer": ('{"version": 2, "leaks": {}}', "has version 2, and this handfast reads up to 1"),
    "no-list": ('{"version": 1, "leaks": 3}', "is no baseline of handfast"),
    "no-entry": ('{"version": 1, "leaks": [3]}', "is no baseline of handfast"),
    "no-owner": ('{"version": 1, "leaks": [{}]}', "is no baseline of handfast .*owner"),
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
        load(path)


def test_a_folder_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(BadBaseline, match="cannot be read"):
        load(tmp_path)
