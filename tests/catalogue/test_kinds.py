"""The catalogue as data: codes, names, families and the shape of the examples."""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys

import pytest

from holdfast.catalogue import FAMILIES, KINDS, BugKind, UnknownCode, kind
from holdfast.check.rules import RULES

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
def test_name_is_short_kebab_case(entry: BugKind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.name)
    assert len(entry.name) <= 30


@each_kind
def test_summary_is_one_sentence_on_one_line(entry: BugKind) -> None:
    assert entry.summary.endswith(".")
    assert "\n" not in entry.summary
    assert ". " not in entry.summary


@each_kind
def test_why_is_two_to_five_sentences(entry: BugKind) -> None:
    assert entry.why.endswith(".")
    assert "  " not in entry.why
    assert 2 <= len(re.findall(r"[.?](?= [A-Z`]|$)", entry.why)) <= 5


@each_kind
def test_codes_named_in_the_text_exist(entry: BugKind) -> None:
    for code in re.findall(r"HF\d+", entry.why + entry.summary):
        assert kind(code) is not entry


@each_kind
@pytest.mark.parametrize("which", ["wrong", "right"])
def test_example_is_small_and_whole(entry: BugKind, which: str) -> None:
    source: str = getattr(entry, which)
    lines = source.splitlines()
    assert source.endswith("\n")
    assert not lines[0].startswith((" ", "\n"))
    assert len(lines) <= 28
    assert max(map(len, lines)) <= 100


def public_names(source: str) -> set[str]:
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(source).body if isinstance(node, definitions)}


@each_kind
def test_right_example_defines_all_that_the_wrong_one_does(entry: BugKind) -> None:
    assert public_names(entry.wrong) <= public_names(entry.right)


def test_at_least_half_of_the_right_examples_need_only_the_standard_library() -> None:
    plain = [entry for entry in KINDS if "import holdfast" not in entry.right]
    assert len(plain) >= len(KINDS) / 2


@each_kind
def test_wrong_example_needs_only_the_standard_library(entry: BugKind) -> None:
    assert "holdfast" not in entry.wrong


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


def test_catalogue_imports_nothing_else_of_holdfast() -> None:
    # A stand-in for the package: its real door brings the runtime along.
    script = (
        "import sys, types, importlib.util as u\n"
        "home = u.find_spec('holdfast').submodule_search_locations\n"
        "door = types.ModuleType('holdfast'); door.__path__ = list(home)\n"
        "sys.modules['holdfast'] = door\n"
        "import holdfast.catalogue\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('holdfast.', 'asyncio'))))"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert output
    assert all(name.startswith("holdfast.catalogue") for name in output)


def test_who_has_a_rule_says_when_it_is_right_to_ignore_it() -> None:
    assert {entry.code for entry in KINDS if entry.fine} == {rule.code for rule in RULES}


@each_kind
def test_when_it_is_right_to_ignore_is_one_sentence(entry: BugKind) -> None:
    assert not entry.fine or (entry.fine.endswith(".") and "  " not in entry.fine)
