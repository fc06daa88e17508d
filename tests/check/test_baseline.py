"""A baseline knows a finding again after the lines have moved, and says what is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handfast._baseline import BadBaseline
from handfast._check.baseline import FILE, gone, load, write
from handfast._check.finding import Finding, Span


def at(path: Path, line: int, code: str = "HF101") -> Finding:
    return Finding(code, f"in line {line}", Span(str(path), line, 1, line, 2))


def lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "x.py"
    path.parent.mkdir()
    path.write_text("start()\nstart()\nother()\n")
    return path


def test_what_is_known_is_not_new_also_after_the_lines_have_moved(source: Path) -> None:
    file = source.parent / "known.json"
    write(file, [at(source, 1), at(source, 2)], lines)
    source.write_text("import a\n\n\nif 1:\n    start()\n    start()\n")
    assert load(file, lines).new([at(source, 5), at(source, 6)]) == []


def test_one_more_than_is_known_is_new(source: Path) -> None:
    file = source.parent / "known.json"
    write(file, [at(source, 1)], lines)
    new = at(source, 2)
    assert load(file, lines).new([at(source, 1), new]) == [new]


def test_another_code_or_another_line_is_new(source: Path) -> None:
    file = source.parent / "known.json"
    write(file, [at(source, 1)], lines)
    new = [at(source, 1, "HF102"), at(source, 3)]
    assert load(file, lines).new(new) == new


def test_paths_are_relative_to_the_file(source: Path) -> None:
    file = source.parent.parent / "known.json"
    write(file, [at(source, 1)], lines)
    [entry] = json.loads(file.read_text())["findings"]
    assert (entry["path"], entry["code"], entry["count"]) == ("src/x.py", "HF101", 1)


def test_what_is_gone_is_counted_for_the_files_that_were_checked(source: Path) -> None:
    file = source.parent / "known.json"
    write(file, [at(source, 1), at(source, 2), at(source, 3)], lines)
    known = load(file, lines)
    known.new([at(source, 1)])
    assert gone(known, [str(source)]) == 2
    assert gone(known, ["elsewhere.py"]) == 0


def test_the_same_findings_write_the_same_bytes(source: Path) -> None:
    file = source.parent / "known.json"
    write(file, [at(source, 1), at(source, 3)], lines)
    before = file.read_bytes()
    write(file, [at(source, 3), at(source, 1)], lines)
    assert file.read_bytes() == before
    write(file, [], lines)
    assert load(file, lines).counts == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is broken"),
        ("[]", "is no baseline of handfast"),
        ('{"version": 2, "findings": []}', "version 2, and this handfast reads up to 1"),
        ('{"version": 1, "findings": [{"path": 1}]}', "is no baseline"),
        (
            '{"version": 1, "findings": [{"path": 1, "code": "", "source": "", "count": 1}]}',
            "entry",
        ),
        (
            '{"version": 1, "findings": [{"path": "", "code": "", "source": "", "count": 0}]}',
            "count 0",
        ),
    ],
)
def test_a_file_that_is_no_baseline_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(BadBaseline, match=message):
        load(tmp_path / "known.json", lines)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadBaseline, match="there is no baseline at"):
        load(tmp_path / "none.json", lines)
    with pytest.raises(BadBaseline, match="cannot be read"):
        load(tmp_path, lines)


def test_the_text_for_what_is_gone() -> None:
    assert FILE.gone_text(0) == ""
    assert FILE.gone_text(1).startswith("1 entry of the baseline no longer occurs")
    assert FILE.gone_text(2).startswith("2 entries of the baseline no longer occur")
