"""@pytest.mark.leaks and the ini file: what is checked, and which leaks are ignored."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from handfast._census import CHECKS, DEFAULT
from handfast._leaks.audit import GRACE
from handfast.pytest_plugin.leaks.marker import (
    LeakOptions,
    LeakSettings,
    is_whole_run,
    unused_ignores,
)
from handfast.pytest_plugin.marker_arguments import BadMarker
from tests.leaks.sample_leak import a_leak
from tests.pytest_plugin.inner_options import with_options

pytest_plugins = ["pytester"]

Collect = Callable[..., dict[str, pytest.Item]]


@pytest.fixture
def collect(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Collect:
    """Writes a test module and returns its tests by name."""
    prepared = with_options(pytester, monkeypatch)

    def collected(source: str, *ini: str) -> dict[str, pytest.Item]:
        items = prepared(*ini).getitems("import pytest\n" + source)
        return {item.nodeid.partition("::")[2]: item for item in items}

    return collected


def settings(items: dict[str, pytest.Item]) -> dict[str, LeakSettings]:
    options = LeakOptions(next(iter(items.values())).config)
    return {name: options.of(item) for name, item in items.items()}


def patterns(of: LeakSettings) -> list[str]:
    return [ignore.pattern for ignores in of.ignores for ignore in ignores.all]


def test_without_a_marker_the_defaults_are_used(collect: Collect) -> None:
    of = settings(collect("def test_it(): ..."))["test_it"]
    assert (of.checks, of.grace, patterns(of)) == (DEFAULT, GRACE, [])


NEAREST = """
pytestmark = pytest.mark.leaks(check=["tasks"], grace=1, ignore="mod.py", reason="module")

@pytest.mark.leaks(grace=2, ignore=["a.py", "b.py"], reason="base")
class Base:
    def test_base(self): ...

@pytest.mark.leaks(check=["+timers"])
class TestIt(Base):
    @pytest.mark.leaks(grace=3, ignore="own.py", reason="test")
    def test_own(self): ...

@pytest.mark.leaks(grace=4)
class TestLess(TestIt): ...

@pytest.mark.leaks(grace=6)
@pytest.mark.leaks(grace=5)
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.leaks(check="threads"))])
def test_two(n): ...
"""


def test_the_nearest_marker_wins_for_each_argument_and_ignores_add_up(collect: Collect) -> None:
    found = {
        name: (of.checks, of.grace, patterns(of)) for name, of in settings(collect(NEAREST)).items()
    }
    both = ("tasks", "timers")
    assert found == {
        "TestIt::test_base": (both, 2, ["mod.py", "a.py", "b.py"]),
        "TestIt::test_own": (both, 3, ["mod.py", "a.py", "b.py", "own.py"]),
        "TestLess::test_base": (both, 4, ["mod.py", "a.py", "b.py"]),
        "TestLess::test_own": (both, 3, ["mod.py", "a.py", "b.py", "own.py"]),
        "test_two[1]": (("tasks",), 5, ["mod.py"]),
        "test_two[2]": (("threads",), 5, ["mod.py"]),
    }


CHECKED = """
@pytest.mark.leaks(check=["timers", "tasks"])
def test_plain(): ...

@pytest.mark.leaks(check=("+memory", "+descriptors"))
def test_more(): ...

@pytest.mark.leaks(check={"tasks", "+memory"})
def test_both(): ...

@pytest.mark.leaks(check=[], reason="it leaks on purpose")
def test_off(): ...
"""


def test_plain_checks_replace_and_those_with_a_plus_add(collect: Collect) -> None:
    found = {name: of.checks for name, of in settings(collect(CHECKED)).items()}
    assert found == {
        "test_plain": ("tasks", "timers"),
        "test_more": (*DEFAULT, "descriptors", "memory"),
        "test_both": ("tasks", "memory"),
        "test_off": (),
    }


WRONG = {
    "'x'": "takes keyword arguments only, not 'x'",
    "checks=[]": "'checks' is not an argument: did you mean check?",
    "zzz=1": "'zzz' is not an argument; use one of check, ignore, reason, grace",
    "check=['taks']": "check: 'taks' is no check: did you mean tasks?",
    "check=['+']": f"check: '\\+' is no check; use one of {', '.join(CHECKS)}",
    "check=None": "check: None is no check; use one of",
    "check=[]": r"check=\[\] checks nothing, and needs a reason",
    "check=[], reason=' '": r"check=\[\] checks nothing, and needs a reason",
    "ignore='HF102'": "ignoring 'HF102' needs a reason",
    "ignore='HF102', reason=' '": "ignoring 'HF102' needs a reason",
    "ignore='', reason='known'": "'' is nothing to ignore",
    "ignore=[3], reason='known'": "3 is nothing to ignore",
    "ignore='HF109', reason='known'": "no bug kind is called 'HF109'",
    "grace=-1": "grace must be a number of seconds, zero or more, not -1",
    "grace='long'": "grace must be a number of seconds, not 'long'",
}


def test_wrong_use_is_an_error_that_names_the_argument(collect: Collect) -> None:
    source = "".join(
        f"@pytest.mark.leaks({given})\ndef test_{n}(): ...\n" for n, given in enumerate(WRONG)
    )
    items = collect(source)
    options = LeakOptions(items["test_0"].config)
    for item, said in zip(items.values(), WRONG.values(), strict=True):
        with pytest.raises(BadMarker, match=said):
            options.of(item)
    # These tests have failed; the ignores of the others are still reported.
    assert unused_ignores(options.uses(items.values())) == []


def test_the_ini_file_gives_the_defaults(collect: Collect) -> None:
    ini = (
        "handfast_checks = +descriptors",
        "handfast_grace = 1.5",
        "handfast_ignore =",
        "    bot.py:12: the driver: has no close",
        "    HF7*: later",
    )
    of = settings(collect("def test_it(): ...", *ini))["test_it"]
    assert (of.checks, of.grace) == ((*DEFAULT, "descriptors"), 1.5)
    assert [(each.pattern, each.reason) for each in of.ignores[0].all] == [
        ("bot.py:12", "the driver: has no close"),
        ("HF7*", "later"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("handfast_checks = taks", "handfast_checks: 'taks' is no check: did you mean tasks?"),
        ("handfast_grace = long", "handfast_grace must be a number of seconds, not 'long'"),
        ("handfast_grace = -1", "handfast_grace must be a number of seconds, zero or more"),
        ("handfast_ignore = HF102", "handfast_ignore: 'HF102' is not 'pattern: reason'"),
        ("handfast_ignore = HF109: known", "no bug kind is called 'HF109'"),
    ],
    ids=["check", "grace", "negative", "no-reason", "code"],
)
def test_wrong_lines_of_the_ini_file_are_a_usage_error(
    collect: Collect, line: str, said: str
) -> None:
    items = collect("def test_it(): ...", line)
    with pytest.raises(pytest.UsageError) as caught:
        settings(items)
    assert str(caught.value).startswith(f"in the ini file: {said}")


def test_an_ignore_of_the_ini_file_or_of_a_marker_covers_a_leak(collect: Collect) -> None:
    source = "@pytest.mark.leaks(ignore='HF102', reason='known')\ndef test_it(): ...\n"
    of = settings(collect(source, "handfast_ignore = HF721: known"))["test_it"]
    other = a_leak("HF731")
    assert of.without_ignored([a_leak("HF102"), other, a_leak("HF721")]) == [other]


# --- unused ignores -----------------------------------------------------------------------------

IGNORING = """
@pytest.mark.leaks(ignore=["HF102", "HF721"], reason="class")
class TestIt:
    def test_one(self): ...
    def test_two(self): ...

@pytest.mark.leaks(ignore="HF731", reason="own")
@pytest.mark.parametrize("n", [1, 2])
def test_three(n): ...
"""


def test_an_ignore_is_unused_if_it_matches_no_leak_of_its_tests(collect: Collect) -> None:
    items = collect(IGNORING, "handfast_ignore = nothing.py: ini")
    options = LeakOptions(items["TestIt::test_one"].config)
    for name, item in items.items():
        leaks = [a_leak("HF721")] if name == "TestIt::test_two" else []
        assert options.of(item).without_ignored(leaks) == []
        options.add_ran(item)
    file = "test_an_ignore_is_unused_if_it_matches_no_leak_of_its_tests.py"
    lines = unused_ignores(options.uses(items.values()))
    tail = "matches no leak any more: remove it (its reason:"
    assert lines == [
        f"the ini file: ignore 'nothing.py' {tail} ini)",
        f"{file}::TestIt: ignore 'HF102' {tail} class)",
        f"{file}::test_three: ignore 'HF731' {tail} own)",
    ]


def test_two_ignores_that_match_one_leak_are_both_used(collect: Collect) -> None:
    source = "@pytest.mark.leaks(ignore='HF102', reason='own')\ndef test_it(): ...\n"
    items = collect(source, "handfast_ignore = HF1*: ini")
    options = LeakOptions(items["test_it"].config)
    assert options.of(items["test_it"]).without_ignored([a_leak()]) == []
    options.add_ran(items["test_it"])
    assert unused_ignores(options.uses(items.values())) == []


def test_an_ignore_is_not_unused_if_some_of_its_tests_did_not_run(collect: Collect) -> None:
    items = collect(IGNORING, "handfast_ignore = nothing.py: ini")
    options = LeakOptions(items["TestIt::test_one"].config)
    some = [items["TestIt::test_one"], items["test_three[1]"]]
    for item in some:
        options.of(item).without_ignored([])
        options.add_ran(item)
    assert unused_ignores(options.uses(items.values())) == []


def test_the_uses_of_all_xdist_workers_are_added(collect: Collect) -> None:
    items = collect(IGNORING)
    one, two = "TestIt::test_one", "TestIt::test_two"
    uses = []
    for mine, code in ((one, "HF102"), (two, "HF103")):
        options = LeakOptions(items[mine].config)
        options.of(items[mine]).without_ignored([a_leak(code)])
        options.add_ran(items[mine])
        uses.append(json.loads(json.dumps(options.uses(items.values()))))
    assert unused_ignores(uses[0]) == unused_ignores(uses[1]) == []
    (lines,) = unused_ignores([*uses[0], *uses[1]])
    assert "TestIt: ignore 'HF721'" in lines


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        ((), True),
        (("-k", "it"), True),  # pytest reports what that deselects
        (("tests",), False),
        (("--ignore=tests",), False),
        (("tests/test_it.py::test_it",), False),
    ],
    ids=["all", "keyword", "folder", "without", "test"],
)
def test_a_run_is_whole_unless_the_command_line_selects_paths(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    whole: bool,
) -> None:
    pytester.mkdir("tests").joinpath("test_it.py").write_text("def test_it(): ...\n")
    config = with_options(pytester, monkeypatch)().parseconfigure(*arguments)
    assert is_whole_run(config) is whole
