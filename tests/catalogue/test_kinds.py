"""The catalogue as data: codes, names, families and the shape of the examples."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from handfast import catalogue
from handfast._check.rules import RULES
from handfast.catalogue import FAMILIES, KINDS, BugKind, UnknownCode, kind

each_kind = pytest.mark.parametrize("entry", KINDS, ids=lambda entry: entry.code)


def test_codes_are_unique_and_sorted() -> None:
    codes = [entry.code for entry in KINDS]
    assert codes == sorted(set(codes))


def test_names_are_unique() -> None:
    assert len({entry.name for entry in KINDS}) == len(KINDS)


def test_families_cover_every_hundred_in_order() -> None:
    assert list(FAMILIES) == [f"HF{hundred}" for hundred in range(1, 8)]
    assert {entry.family for entry in KINDS} == set(FAMILIES.values())


@each_kind
def test_code_falls_in_its_family(entry: BugKind) -> None:
    assert re.fullmatch(r"HF[1-7]\d\d", entry.code)
    assert FAMILIES[entry.code[:3]] == entry.family


@each_kind
def test_name_is_kebab_case(entry: BugKind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.name)


@each_kind
def test_page_has_all_its_parts(entry: BugKind) -> None:
    assert all((entry.summary, entry.why, entry.wrong, entry.right))


@pytest.mark.parametrize(
    "damage",
    [
        ("# HF101 ", "# HF102 "),
        ("## Why it is bad", "## Why"),
        ("## When to ignore it", "## Fine"),
        ("```python", "```"),
    ],
)
def test_page_with_other_headings_is_refused(
    damage: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(catalogue.__file__).parent / "pages" / "HF101.md"
    (tmp_path / "HF101.md").write_text(page.read_text().replace(*damage))
    monkeypatch.setattr(catalogue, "_PAGES", str(tmp_path))
    with pytest.raises(ValueError, match=r"HF101\.md does not have the headings"):
        catalogue._page.__wrapped__("HF101")


@each_kind
def test_codes_named_in_the_text_exist(entry: BugKind) -> None:
    for code in re.findall(r"HF\d+", entry.why + entry.summary):
        assert kind(code) is not entry


def public_names(source: str) -> set[str]:
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(source).body if isinstance(node, definitions)}


@each_kind
def test_right_example_defines_all_that_the_wrong_one_does(entry: BugKind) -> None:
    assert public_names(entry.wrong) <= public_names(entry.right)


def test_at_least_half_of_the_right_examples_need_only_the_standard_library() -> None:
    plain = [entry for entry in KINDS if "import handfast" not in entry.right]
    assert len(plain) >= len(KINDS) / 2


@each_kind
def test_wrong_example_needs_only_the_standard_library(entry: BugKind) -> None:
    assert "handfast" not in entry.wrong


@pytest.mark.parametrize("word", ["HF101", "hf101", " HF101 ", "task-dropped", "Task-Dropped"])
def test_kind_finds_by_code_and_by_name(word: str) -> None:
    assert kind(word).code == "HF101"


def test_unknown_code_names_near_matches() -> None:
    with pytest.raises(UnknownCode, match="HF101 task-dropped") as caught:
        kind("HF1O1")
    assert caught.value.code == "HF1O1"
    assert kind("HF101") in caught.value.near
    assert isinstance(caught.value, LookupError)


def test_unknown_name_names_near_matches() -> None:
    with pytest.raises(UnknownCode, match="HF101 task-dropped"):
        kind("tasks-droped")


def test_unknown_code_that_is_like_nothing_says_only_that() -> None:
    with pytest.raises(UnknownCode) as caught:
        kind("xyzzy")
    assert caught.value.near == ()
    assert str(caught.value) == "no bug kind is called 'xyzzy'"


def test_kinds_are_frozen_and_slotted() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        KINDS[0].name = "other"  # type: ignore[misc]
    assert not hasattr(KINDS[0], "__dict__")


def test_kinds_can_be_pickled_and_copied() -> None:
    assert pickle.loads(pickle.dumps(KINDS[0])) == copy.copy(KINDS[0]) == KINDS[0]


def test_a_page_is_read_only_when_its_text_is_used() -> None:
    script = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "from handfast.catalogue import kind\n"
        "found = kind('HF101'); assert not [path for path in opened if path.endswith('.md')]\n"
        "found.name, found.why\n"
        "print(*[path[-8:] for path in opened if path.endswith('.md')])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert output.stdout.split() == ["HF101.md"], output.stderr


def test_catalogue_imports_nothing_else_of_handfast() -> None:
    # An empty stand-in for the package, because the real one imports the runtime.
    script = (
        "import sys, types, importlib.util as u\n"
        "home = u.find_spec('handfast').submodule_search_locations\n"
        "package = types.ModuleType('handfast'); package.__path__ = list(home)\n"
        "sys.modules['handfast'] = package\n"
        "import handfast.catalogue\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('handfast.', 'asyncio'))))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert output
    assert all(name.startswith("handfast.catalogue") for name in output)


def test_kinds_with_a_rule_say_when_to_ignore_it() -> None:
    assert {entry.code for entry in KINDS if entry.when_to_ignore} == {rule.code for rule in RULES}
