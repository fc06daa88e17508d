"""A run over files: what is found, what is handled, and that nothing stops it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.check import Report, check
from holdfast.check.files import Found
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule, found
from tests.check.tiny import RULE, asks_base, asks_names

WRONG = "import asyncio\ndrop(asyncio)\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, content: str | bytes = WRONG) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def places(report: Report) -> list[tuple[str, str, int, int]]:
    return [
        (each.code, each.place.path, each.place.line, each.place.column) for each in report.findings
    ]


def test_findings_come_sorted_with_both_places() -> None:
    put("b.py")
    put("a.py", "import asyncio\n\ndrop(drop(1))\n")
    report = check(["."], rules=[RULE])
    assert places(report) == [
        ("HF101", "a.py", 3, 1),
        ("HF101", "a.py", 3, 6),
        ("HF101", "b.py", 2, 1),
    ]
    assert report.findings[0].related[0].place.line == 1
    assert (report.files, report.clean) == (2, False)


def test_a_file_without_a_word_of_asyncio_is_not_parsed() -> None:
    put("a.py", "drop(1")
    assert check(["."], rules=[RULE]).clean


def test_what_is_checked_is_not_run() -> None:
    put("a.py", "import asyncio\nopen('ran', 'w')\n")
    check(["."], rules=[RULE])
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"import asyncio\nx = (\n", "syntax error"),
        (b"import asyncio\nx = '\xff'\n", "cannot be decoded"),
        (b"# coding: nonsense\nimport asyncio\n", "cannot be decoded"),
        (b"import asyncio\n\0\n", ""),
        (b"import asyncio\nx = " + b"(" * 5000 + b")" * 5000, ""),
        (b"import asyncio\nx = " + b"-" * 100_000 + b"1", ""),
    ],
    ids=["syntax", "encoding", "cookie", "nul", "parentheses", "nesting"],
)
def test_a_file_that_cannot_be_parsed_is_told_and_the_run_goes_on(
    content: bytes, told: str
) -> None:
    put("a.py", content)
    put("b.py")
    report = check(["."], rules=[RULE])
    assert places(report) == [("HF101", "b.py", 2, 1)]
    [trouble] = report.broken
    assert trouble.path == "a.py"
    assert told in trouble.why


def test_a_deep_tree_that_parses_is_told_or_checked() -> None:
    put("a.py", "import asyncio\nx = " + "a." * 900 + "b\ny = " + "1 + " * 900 + "1\ndrop(1)\n")
    report = check(["."], rules=[RULE])
    assert places(report) or report.broken


def test_a_file_of_a_hundred_thousand_lines_is_checked() -> None:
    put("a.py", "import asyncio\n" + "\n# and so on\n" * 50_000 + "drop(1)\n")
    assert places(check(["."], rules=[RULE])) == [("HF101", "a.py", 100_002, 1)]


def test_an_odd_encoding_that_is_declared_is_read() -> None:
    put("a.py", "# coding: latin-1\nimport asyncio\nx = 'ä'; drop(1)\n".encode("latin-1"))
    put("b.py", b"\xef\xbb\xbf" + WRONG.encode())
    report = check(["."], rules=[RULE])
    assert places(report) == [("HF101", "a.py", 3, 10), ("HF101", "b.py", 2, 1)]


def test_columns_are_those_of_characters_not_of_bytes() -> None:
    put("a.py", "import asyncio\nx = 'äöü€'; drop(1)\n")
    [finding] = check(["."], rules=[RULE]).findings
    assert (finding.place.column, finding.place.end_column) == (13, 20)
    assert finding.fix is not None
    assert finding.fix.edits[0].place.column == 13


def test_a_form_feed_ends_no_line() -> None:
    put("a.py", "import asyncio\n\x0c\ndrop(1)  # noqa: HF101\n")
    assert check(["."], rules=[RULE]).clean


def test_a_file_that_cannot_be_read_is_told_and_the_run_goes_on() -> None:
    put("a.py")
    Path("loop.py").symlink_to("loop.py")
    Path("gone.py").symlink_to("nowhere.py")
    assert check(["."], rules=[RULE]).paths == ("a.py",)
    if os.geteuid():
        put("b.py").chmod(0)
        [trouble] = check(["."], rules=[RULE]).broken
        assert (trouble.path, trouble.why) == ("b.py", "Permission denied")


def test_a_file_that_goes_while_we_look_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")
    monkeypatch.setattr("holdfast.check.engine.find", lambda *_: Found(["a.py", "gone.py"]))
    [trouble] = check(["."], rules=[RULE]).broken
    assert (trouble.path, trouble.why) == ("gone.py", "No such file or directory")


def _faulty(module: Module) -> Iterator[Finding]:
    yield found("HF201", module, module.source.tree.body[0], "before it fails")
    raise KeyError("oops")


def test_the_fault_of_one_rule_is_told_and_the_others_go_on() -> None:
    put("a.py")
    report = check(["."], rules=[Rule("HF201", _faulty), RULE])
    assert [each.code for each in report.findings] == ["HF201", "HF101"]
    assert "fault of holdfast in HF201: KeyError: 'oops'" in report.broken[0].why


def test_the_standard_input_is_a_file() -> None:
    report = check(["-"], rules=[RULE], stdin=WRONG.encode())
    assert places(report) == [("HF101", "-", 2, 1)]
    assert report.stdin == WRONG


def test_select_ignore_and_pedantic() -> None:
    put("a.py")
    pedantic = Rule("HF101", RULE.check, pedantic=True)
    assert not check(["."], rules=[RULE], ignore=["HF1"]).findings
    assert not check(["."], rules=[RULE], select=["HF2"]).findings
    assert not check(["."], rules=[pedantic]).findings
    assert check(["."], rules=[pedantic], pedantic=True).findings[0].pedantic
    assert check(["."], rules=[pedantic], select=["task-dropped"]).findings


def test_settings_of_the_nearest_file_count() -> None:
    put("pyproject.toml", '[tool.holdfast.check]\nper-file-ignores = {"a.py" = ["HF101"]}\n')
    put("a.py")
    put("sub/pyproject.toml", "[tool.holdfast.check]\n")
    put("sub/a.py")
    assert [each.place.path for each in check(["."], rules=[RULE]).findings] == ["sub/a.py"]


def test_a_noqa_for_a_kind_that_has_no_rule_here_is_no_mistake() -> None:
    put("a.py", "import asyncio  # noqa: HF301\nx = 1  # noqa: HF101\ny = 1  # noqa: HF999\n")
    report = check(["."], rules=[RULE])
    assert [(each.code, each.place.line) for each in report.findings] == [
        ("HF001", 2),
        ("HF001", 3),
    ]


def test_an_unused_noqa_is_silent_if_it_is_not_wanted() -> None:
    put("a.py", "import asyncio  # noqa: HF101\n")
    assert check(["."], rules=[RULE], ignore=["HF001"]).clean
    assert not check(["."], rules=[RULE]).clean


BASE = "class Base:\n    def close(self): ...\n"
CHILD = "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n"


def test_a_base_class_in_another_file_is_known_even_if_only_one_file_is_named() -> None:
    put("pkg/__init__.py", "")
    put("pkg/base.py", BASE)
    put("pkg/child.py", CHILD)
    assert check(["pkg/child.py"], rules=[asks_base]).clean
    put("pkg/base.py", "class Base: ...\n")
    assert len(check(["pkg/child.py"], rules=[asks_base]).findings) == 1


def test_what_another_file_of_the_package_ends_is_known_even_if_only_one_is_named() -> None:
    put("pkg/__init__.py", "")
    put("pkg/sub/__init__.py", "")
    put("pkg/sub/one.py", "import asyncio\nclass Job: ...\n")
    assert len(check(["pkg/sub/one.py"], rules=[asks_names]).findings) == 1
    put("pkg/other.py", "def stop(x):\n    x.job.cancel()\n")
    report = check(["pkg/sub/one.py"], rules=[asks_names])
    assert (report.clean, report.paths) == (True, ("pkg/sub/one.py",))


def test_projects_side_by_side_do_not_speak_for_each_other() -> None:
    put("one/pkg/__init__.py", "")
    put("one/pkg/job.py", "import asyncio\nclass Job: ...\n")
    put("two/other/__init__.py", "")
    put("two/other/stop.py", "def stop(x):\n    x.job.cancel()\n")
    files = [put(f"{each}/pyproject.toml", "") for each in ("one", "two")]
    assert len(check(["."], rules=[asks_names]).findings) == 1
    for file in files:
        file.unlink()
    assert check(["."], rules=[asks_names]).clean


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file for each hand-over to a worker."""
    monkeypatch.setattr("holdfast.check.jobs._PART", 1)


@pytest.mark.usefixtures("small_parts")
def test_several_processes_find_the_same() -> None:
    for number in range(40):
        put(f"f{number}.py")
    told: list[tuple[int, int]] = []
    alone = check(["."], rules=[RULE])
    together = check(["."], rules=[RULE], jobs=2, progress=lambda *now: told.append(now))
    assert together == alone
    assert len(together.findings) == 40
    assert told[-1] == (40, 40)


def _kills(module: Module) -> Iterator[Finding]:
    import multiprocessing
    import os

    if multiprocessing.parent_process() is not None:
        os._exit(9)
    yield from RULE.check(module)


@pytest.mark.usefixtures("small_parts")
def test_a_worker_that_dies_costs_nothing() -> None:
    for number in range(4):
        put(f"f{number}.py")
    report = check(["."], rules=[Rule("HF101", _kills)], jobs=2)
    assert len(report.findings) == 4


def test_the_room_is_light_to_import() -> None:
    program = (
        "import sys, holdfast; before = set(sys.modules); import holdfast.check; "
        "print(len(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == 1


def test_the_house_has_its_own_rules() -> None:
    put("a.py", "x = 1\n")
    assert check(["a.py"]).clean
    with pytest.raises(AttributeError):
        from holdfast import check as room

        room.nonsense  # noqa: B018
