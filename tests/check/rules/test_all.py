"""Which rules there are: as many as files in the folder, each with a code of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handfast._check import rules
from handfast._check.engine import engine
from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended
from handfast._check.rules import RULES
from handfast._check.rules.rule import Rule, Words, report
from handfast.catalogue import kind


def test_each_file_in_the_folder_is_a_rule() -> None:
    files = {each.stem for each in Path(rules.__file__).parent.glob("*.py")} - {"__init__", "rule"}
    assert {rule.check.__module__.rpartition(".")[2] for rule in RULES} == files
    assert len(RULES) == len(files)


def test_the_rules_are_sorted_by_code_and_no_code_comes_twice() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))


def test_each_code_is_in_the_catalogue() -> None:
    assert all(kind(rule.code).code == rule.code for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_wrong_example_has_a_word_that_the_rule_needs(rule: Rule) -> None:
    assert rule.may_find_in(Words(kind(rule.code).wrong))
    assert rule.may_find_in(Words("")) is not bool(rule.needs)


def test_a_rule_runs_only_on_files_with_one_of_its_words(tmp_path: Path) -> None:
    def check(module: Module) -> Iterator[Finding]:
        yield report("HF101", module, module.source.tree.body[0], "found")

    (tmp_path / "one.py").write_text("async def one(): alpha()\n")
    (tmp_path / "two.py").write_text("async def two(): beta()\n")
    (tmp_path / "three.py").write_text("async def three(): gamma()\n")
    rule = Rule("HF101", check, needs=("alpha|beta", "async"))
    paths = [each.place.path for each in engine.check([tmp_path], rules=[rule]).findings]
    assert [Path(path).name for path in paths] == ["one.py", "two.py"]


def test_a_file_that_no_rule_can_match_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("async def one(: x  # noqa: HF999\n")
    report = engine.check([tmp_path])
    assert [(each.code, each.place.line) for each in report.findings] == [("HF001", 1)]
    assert not report.broken


@pytest.mark.parametrize(
    ("text", "word", "there"),
    [
        ("t = create_task(f())", "<creating>", True),
        ("hass.async_create_task(f())", "<creating>", False),
        ("async def on_lost(self): ...", "<closing>", True),
        ("async def run(self): ...", "<closing>", False),
        ("start()", "<makers>", True),
        ("restart", "<makers>", False),
        ("p = Poller()", "<objects>", True),
        ("class Mine(lib.Poller[int]): ...", "<owners>", True),
        ("class Poller: ...", "<owners>", False),
        ("class Mine(Entity): ...", "<clearing>", True),
        ("class Mine(Poller): ...", "<clearing>", False),
        ("one", "two|one", True),
    ],
)
def test_words_know_what_other_files_export(text: str, word: str, there: bool) -> None:
    other = b"""
import asyncio

def start():
    return asyncio.create_task(f())

class Poller:
    def begin(self):
        self.task = asyncio.create_task(f())

class Entity:
    def disconnect(self):
        self.client = None
"""
    assert Words(text, Project({}, count_ended([other]))).has(word) is there


def test_an_unknown_word_is_a_mistake_of_the_rule() -> None:
    with pytest.raises(ValueError, match="<creator>"):
        Words("").has("<creator>")


def test_a_file_is_checked_again_if_another_begins_to_return_a_task(tmp_path: Path) -> None:
    start = tmp_path / "p" / "start.py"
    start.parent.mkdir()
    (start.parent / "__init__.py").touch()
    (start.parent / "user.py").write_text(
        "from p.start import begin\n\nasync def use():\n    begin()\n"
    )
    start.write_text("import asyncio\n\ndef begin():\n    return 1\n")
    folder = tmp_path / "cache"
    assert engine.check([tmp_path / "p"], cache=folder).clean
    start.write_text("import asyncio\n\ndef begin():\n    return asyncio.create_task(work())\n")
    assert [each.code for each in engine.check([tmp_path / "p"], cache=folder).findings] == [
        "HF101"
    ]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("import trio", ["HF541"]),
        ("from trio import sleep", ["HF541"]),
        ("import trio, asyncio", ["HF501", "HF541"]),
        ("import anyio, trio", ["HF501", "HF541"]),
        ("import trionic as trio", ["HF501"]),
    ],
)
def test_a_file_of_trio_is_not_judged_by_the_rules_of_asyncio(
    head: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "one.py").write_text(
        f"{head}\n\nasync def worker(queue):\n    while True:\n        try:\n"
        "            await queue.get()\n        except BaseException:\n            pass\n\n"
        "async def numbers():\n    async with trio.open_nursery() as nursery:\n        yield nursery\n"
    )
    found = {each.code for each in engine.check([tmp_path]).findings}
    assert found & {"HF501", "HF541"} == set(expected)
