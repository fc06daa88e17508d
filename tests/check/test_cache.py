"""A result is taken from the cache only if nothing that it depends on has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handfast._check.engine.cache import signature_of, user_key
from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule
from handfast.check import Report, check
from tests.check.tiny_rules import RULE, never_ended, no_close

WRONG = "import asyncio\ndrop(asyncio)\n"


class Counted:
    """A rule that records the files that it checks."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.checked: list[str] = []
        self.rule = Rule(rule.code, self._check)

    def _check(self, module: Module) -> Iterator[Finding]:
        self.checked.append(module.path)
        yield from self._rule.check(module)

    def run(self, **options: object) -> tuple[Report, list[str]]:
        self.checked = []
        options = {"edits": False, **options}
        report = check(["."], rules=[self.rule], cache="kept", **options)  # type: ignore[arg-type]
        if not options["edits"]:  # a cached fix has none
            report = replace(report, findings=tuple(map(without_edits, report.findings)))
        return report, self.checked


def without_edits(finding: Finding) -> Finding:
    return replace(finding, fix=finding.fix and replace(finding.fix, edits=()))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    Path("pyproject.toml").write_text("")
    return tmp_path


def put(name: str, content: str = WRONG) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def load() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Path("kept/check.json").read_bytes().partition(b"\n")[2])
    return data


def save(data: object, key: bytes | None = None) -> None:
    body = json.dumps(data).encode()
    signature = signature_of(body, user_key() if key is None else key)
    Path("kept/check.json").write_bytes(signature + b"\n" + body)


def test_a_file_that_has_not_changed_is_not_checked_again() -> None:
    put("a.py")
    put("b.py")
    put("broken.py", "import asyncio\n(\n")
    counted = Counted(RULE)
    first, checked = counted.run()
    assert checked == ["a.py", "b.py"]
    again, checked = counted.run()
    assert (again, checked) == (first, [])
    put("b.py", WRONG + "drop(2)\n")
    third, checked = counted.run()
    assert checked == ["b.py"]
    assert len(third.findings) == 3


def test_other_settings_have_other_results() -> None:
    put("a.py")
    counted = Counted(RULE)
    counted.run()
    assert counted.run(select=["HF101"])[1] == ["a.py"]
    put("pyproject.toml", '[tool.handfast.check]\nper-file-ignores = {"a.py" = ["HF101"]}\n')
    assert counted.run()[0].clean


def test_a_change_of_a_base_class_invalidates_its_subclasses() -> None:
    put("pkg/__init__.py", "")
    put("pkg/root.py", "class Root: ...\n")
    put("pkg/base.py", "import asyncio\nfrom pkg.root import Root\nclass Base(Root): ...\n")
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    put("pkg/alone.py", "import asyncio\nclass Alone: ...\n")
    counted = Counted(no_close)
    assert len(counted.run()[0].findings) == 3
    assert counted.run()[1] == []
    put("pkg/root.py", "class Root:\n    def close(self): ...\n")
    report, checked = counted.run()
    assert sorted(checked) == ["pkg/base.py", "pkg/child.py"]
    assert [each.place.path for each in report.findings] == ["pkg/alone.py"]


def test_a_new_module_invalidates_files_that_import_it() -> None:
    put("pkg/__init__.py", "")
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    counted = Counted(no_close)
    assert not counted.run()[0].clean
    put("pkg/base.py", "class Base:\n    def close(self): ...\n")
    assert counted.run()[0].clean


def test_a_change_in_what_another_file_ends_invalidates_a_result() -> None:
    put("a.py", "import asyncio\nclass Job: ...\n")
    counted = Counted(never_ended)
    assert len(counted.run()[0].findings) == 1
    put("b.py", "def stop(x):\n    x.job.cancel()\n")
    report, checked = counted.run()
    assert (report.clean, checked) == (True, ["a.py"])
    put("b.py", "def stop(x):\n    x.job.cancel()\n    x.unchecked.cancel()\n")
    assert counted.run()[1] == []


def test_a_finding_is_loaded_completely() -> None:
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0].findings
    assert counted.run() == (counted.run()[0], [])
    assert counted.run()[0].findings == first
    assert first[0].fix is not None
    assert first[0].related


def test_edits_are_never_taken_from_the_cache() -> None:
    # Attack 2: an edit of a poisoned cache was written into a file.
    put("a.py")
    counted = Counted(RULE)
    whole = counted.run(edits=True)[0]
    assert counted.run(edits=True) == (whole, ["a.py"])
    [[_, result]] = load()["results"].values()
    assert result["findings"][0]["fix"]["edits"] == []


@pytest.mark.parametrize("in_finding", [False, True])
def test_a_result_of_another_file_is_not_used(in_finding: bool) -> None:
    # Attack 2, with the key of the user.
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0]
    data = load()
    for _, result in data["results"].values():
        (result["findings"][0]["place"] if in_finding else result)["path"] = "/other.py"
    save(data)
    assert counted.run() == (first, ["a.py"])


FULL = """
import os, resource
os.makedirs("kept")
from handfast.check import check
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
assert len(check(["a.py"], cache="kept").findings) == 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
def test_a_full_disk_leaves_no_empty_files(here: Path) -> None:
    # Attack "ugly": an empty `.gitignore` was left, and never written again.
    put("a.py", "import asyncio\nasync def f():\n    asyncio.create_task(g())\n")
    user_key()  # exists already
    subprocess.run([sys.executable, "-c", FULL], check=True, timeout=60)
    assert os.listdir("kept") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tool": 1}', '{"facts": 1}', "null"])
def test_a_broken_cache_is_ignored(text: str) -> None:
    put("a.py")
    put("kept/check.json", text)
    assert len(Counted(RULE).run()[0].findings) == 1


def test_unreadable_entries_are_ignored() -> None:
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0]
    data = load()
    for table in ("facts", "results"):
        data[table] = dict.fromkeys(data[table], "nonsense")
    save(data)
    assert counted.run() == (first, ["a.py"])


def test_git_and_backups_ignore_the_folder() -> None:
    put("a.py")
    Counted(RULE).run()
    assert Path("kept/.gitignore").read_text().endswith("*\n")
    assert Path("kept/CACHEDIR.TAG").exists()
    assert sorted(os.listdir("kept")) == [".gitignore", "CACHEDIR.TAG", "check.json"]


def test_a_cache_that_cannot_be_written_is_not_an_error() -> None:
    put("a.py")
    put("kept", "a file in its place")
    assert len(Counted(RULE).run()[0].findings) == 1


def test_entries_that_were_not_used_for_weeks_are_removed() -> None:
    put("a.py")
    counted = Counted(RULE)
    counted.run()
    data = load()
    data["facts"]["old"] = [1, 0, []]
    data["results"]["old"] = [1, {}]
    save(data)
    put("b.py")
    counted.run()
    data = load()
    assert "old" not in data["facts"]
    assert "old" not in data["results"]
    assert len(data["results"]) == 2


def test_several_runs_at_once_share_the_cache() -> None:
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


@pytest.mark.parametrize("key", [b"another", b"x" * 32])
def test_a_cache_that_another_user_has_written_is_ignored(key: bytes) -> None:
    # Attack 2: a repository came with one that hides its findings.
    put("a.py")
    counted = Counted(RULE)
    first = counted.run()[0]
    data = load()
    for day_and_result in data["results"].values():
        day_and_result[1]["findings"] = []
    save(data, key)
    assert counted.run() == (first, ["a.py"])
    save(load())  # signed by this user, the same entries are used
    assert counted.run() == (first, [])


def test_without_a_key_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    put("a.py")
    put("file", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("file").absolute()))
    counted = Counted(RULE)
    assert counted.run()[1] == counted.run()[1] == ["a.py"]
    assert not Path("kept").exists()


def test_the_key_is_readable_by_its_user_only(monkeypatch: pytest.MonkeyPatch) -> None:
    key = user_key()
    assert (len(key), user_key()) == (32, key)
    assert Path("user/handfast/check.key").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    assert user_key() == key  # another process was first
    assert os.listdir("user/handfast") == ["check.key"]


def test_no_link_is_followed_to_write_the_cache() -> None:
    # Attack 3: a cloned folder that is a link, or has one in it.
    put("a.py")
    Path("elsewhere").mkdir()
    Path("kept").symlink_to("elsewhere")
    assert len(Counted(RULE).run()[0].findings) == 1
    assert os.listdir("elsewhere") == []
    Path("kept").unlink()
    Path("kept").mkdir()
    Path("kept/.gitignore").symlink_to("../elsewhere/new")
    assert len(Counted(RULE).run()[0].findings) == 1
    assert os.listdir("elsewhere") == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_the_cache_or_the_settings_is_not_read() -> None:
    # Attack 16: to open it would wait for a writer.
    put("a.py")
    Path("pyproject.toml").unlink()
    os.mkfifo("pyproject.toml")
    Path("kept").mkdir()
    os.mkfifo("kept/check.json")
    assert len(Counted(RULE).run()[0].findings) == 1


def test_a_result_depends_on_what_was_read_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    # Attack 5: `pkg/base.py` is read again when `child` needs it, and has changed by then.
    plain, closing = "class Base: ...\n", "class Base:\n    def close(self): ...\n"
    put("pkg/__init__.py", "")
    put("pkg/base.py", plain)
    put("pkg/child.py", "import asyncio\nfrom pkg.base import Base\nclass Child(Base): ...\n")
    counted = Counted(no_close)

    def changed(path: str) -> bytes:
        put("pkg/base.py", closing)
        return Path(path).read_bytes()

    with monkeypatch.context() as context:
        context.setattr("handfast._check.engine.dependency_tracking.read", changed)
        assert counted.run()[0].clean
    put("pkg/base.py", plain)
    assert not counted.run()[0].clean
