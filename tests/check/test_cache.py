"""A result is taken from the cache if all that it came from is the same, and only then."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.check import Report, check
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule
from tests.check.tiny import RULE, asks_base, asks_names

WRONG = "import asyncio\ndrop(asyncio)\n"


class Counted:
    """A rule that counts how often it is asked."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.asked: list[str] = []
        self.rule = Rule(rule.code, self._check)

    def _check(self, module: Module) -> Iterator[Finding]:
        self.asked.append(module.path)
        yield from self._rule.check(module)

    def run(self, **options: object) -> tuple[Report, list[str]]:
        self.asked = []
        report = check(["."], rules=[self.rule], cache="kept", **options)  # type: ignore[arg-type]
        return report, self.asked


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("")
    return tmp_path


def put(name: str, content: str = WRONG) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_what_has_not_changed_is_not_looked_at_again() -> None:
    put("a.py")
    put("b.py")
    put("broken.py", "import asyncio\n(\n")
    counted = Counted(RULE)
    first, asked = counted.run()
    assert asked == ["a.py", "b.py"]
    again, asked = counted.run()
    assert (again, asked) == (first, [])
    put("b.py", WRONG + "drop(2)\n")
    third, asked = counted.run()
    assert asked == ["b.py"]
    assert len(third.findings) == 3


def test_other_settings_are_another_question() -> None:
    put("a.py")
    counted = Counted(RULE)
    counted.run()
    assert counted.run(select=["HF101"])[1] == ["a.py"]
    put("pyproject.toml", '[tool.holdfast.check]\nper-file-ignores = {"a.py" = ["HF101"]}\n')
    assert counted.run()[0].clean


def test_a_change_in_a_base_class_counts_for_those_that_derive_from_it() -> None:
    put("pkg/__init__.py", "")
    put("pkg/root.py", "class Root: ...\n")
    put("pkg/base.py", "import asyncio\nfrom pkg.root import Root\nclass Base(Root): ...\n")
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    put("pkg/alone.py", "import asyncio\nclass Alone: ...\n")
    counted = Counted(asks_base)
    assert len(counted.run()[0].findings) == 3
    assert counted.run()[1] == []
    put("pkg/root.py", "class Root:\n    def close(self): ...\n")
    report, asked = counted.run()
    assert sorted(asked) == ["pkg/base.py", "pkg/child.py"]
    assert [each.place.path for each in report.findings] == ["pkg/alone.py"]


def test_a_module_that_was_not_there_counts_once_it_is() -> None:
    put("pkg/__init__.py", "")
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    counted = Counted(asks_base)
    assert not counted.run()[0].clean
    put("pkg/base.py", "class Base:\n    def close(self): ...\n")
    assert counted.run()[0].clean


def test_what_another_file_ends_counts() -> None:
    put("a.py", "import asyncio\nclass Job: ...\n")
    counted = Counted(asks_names)
    assert len(counted.run()[0].findings) == 1
    put("b.py", "def stop(x):\n    x.job.cancel()\n")
    report, asked = counted.run()
    assert (report.clean, asked) == (True, ["a.py"])
    put("b.py", "def stop(x):\n    x.job.cancel()\n    x.unasked.cancel()\n")
    assert counted.run()[1] == []


def test_a_finding_comes_back_whole() -> None:
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0].findings
    assert counted.run()[0].findings == first
    assert first[0].fix is not None
    assert first[0].related


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tool": 1}', '{"facts": 1}', "null"])
def test_a_broken_cache_is_none(text: str) -> None:
    put("a.py")
    put("kept/check.json", text)
    assert len(Counted(RULE).run()[0].findings) == 1


def test_a_cache_with_foreign_entries_is_none_for_these() -> None:
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0]
    data = json.loads(Path("kept/check.json").read_text())
    for table in ("facts", "results"):
        data[table] = dict.fromkeys(data[table], "nonsense")
    put("kept/check.json", json.dumps(data))
    assert counted.run() == (first, ["a.py"])


def test_git_does_not_see_it_and_backups_pass_it_by() -> None:
    put("a.py")
    Counted(RULE).run()
    assert Path("kept/.gitignore").read_text().endswith("*\n")
    assert Path("kept/CACHEDIR.TAG").exists()
    assert sorted(os.listdir("kept")) == [".gitignore", "CACHEDIR.TAG", "check.json"]


def test_a_folder_that_cannot_be_written_is_no_error() -> None:
    put("a.py")
    put("kept", "a file in its place")
    assert len(Counted(RULE).run()[0].findings) == 1


def test_entries_that_nobody_asked_for_in_weeks_go() -> None:
    put("a.py")
    counted = Counted(RULE)
    counted.run()
    data = json.loads(Path("kept/check.json").read_text())
    data["facts"]["old"] = [1, 0, []]
    data["results"]["old"] = [1, {}]
    put("kept/check.json", json.dumps(data))
    put("b.py")
    counted.run()
    data = json.loads(Path("kept/check.json").read_text())
    assert "old" not in data["facts"]
    assert "old" not in data["results"]
    assert len(data["results"]) == 2


def test_several_at_once_do_not_disturb_each_other() -> None:
    for number in range(20):
        put(f"f{number}.py", WRONG + f"x = {number}\n")
    reports: list[Report] = []

    def one() -> None:
        reports.append(check(["."], rules=[RULE], cache="kept"))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(report.findings) for report in reports] == [20] * 4
    assert Counted(RULE).run()[1] == []
