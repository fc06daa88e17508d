"""@pytest.mark.leaks and the ini file: what is looked for, and what may be left behind."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast.census import CHECKS, DEFAULT
from holdfast.leaks.audit import GRACE
from holdfast.pytest_plugin.leak_ignores import reach, stale
from holdfast.pytest_plugin.leak_marker import Asked, Asking
from holdfast.pytest_plugin.marks import BadMarker
from tests.leaks.found import a_leak
from tests.pytest_plugin.asking import with_options

pytest_plugins = ["pytester"]

Collect = Callable[..., dict[str, pytest.Item]]


@pytest.fixture
def collect(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Collect:
    """Writes a suite, and gives its tests by name."""
    prepared = with_options(pytester, monkeypatch)

    def collected(source: str, *ini: str) -> dict[str, pytest.Item]:
        items = prepared(*ini).getitems("import pytest\n" + source)
        return {item.nodeid.partition("::")[2]: item for item in items}

    return collected


def asked(items: dict[str, pytest.Item]) -> dict[str, Asked]:
    asking = Asking(next(iter(items.values())).config)
    return {name: asking.of(item) for name, item in items.items()}


def patterns(of: Asked) -> list[str]:
    return [ignore.pattern for ignores in of.ignores for ignore in ignores.all]


def test_without_a_marker_the_usual_is_looked_for(collect: Collect) -> None:
    of = asked(collect("def test_it(): ..."))["test_it"]
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
        name: (of.checks, of.grace, patterns(of)) for name, of in asked(collect(NEAREST)).items()
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
    found = {name: of.checks for name, of in asked(collect(CHECKED)).items()}
    assert found == {
        "test_plain": ("tasks", "timers"),
        "test_more": (*DEFAULT, "descriptors", "memory"),
        "test_both": ("tasks", "memory"),
        "test_off": (),
    }


WRONG = {
    "'x'": "takes keyword arguments only, not 'x'",
    "checks=[]": "'checks' is no argument of it: did you mean check?",
    "zzz=1": "'zzz' is no argument of it, which takes check, ignore, reason, grace",
    "check=['taks']": "check: 'taks' is no check: did you mean tasks?",
    "check=['+']": f"check: '\\+' is no check; there are {', '.join(CHECKS)}",
    "check=None": "check: None is no check; there are",
    "check=[]": r"check=\[\] looks for nothing, and needs a reason",
    "check=[], reason=' '": r"check=\[\] looks for nothing, and needs a reason",
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
    asking = Asking(items["test_0"].config)
    for item, said in zip(items.values(), WRONG.values(), strict=True):
        with pytest.raises(BadMarker, match=said):
            asking.of(item)
    # They have failed for it; the rest of the suite is told as ever.
    assert stale(asking.uses(items.values())) == []


def test_the_ini_file_gives_the_defaults(collect: Collect) -> None:
    ini = (
        "holdfast_checks = +descriptors",
        "holdfast_grace = 1.5",
        "holdfast_ignore =",
        "    bot.py:12: the driver: has no close",
        "    HF7*: later",
    )
    of = asked(collect("def test_it(): ...", *ini))["test_it"]
    assert (of.checks, of.grace) == ((*DEFAULT, "descriptors"), 1.5)
    assert [(each.pattern, each.reason) for each in of.ignores[0].all] == [
        ("bot.py:12", "the driver: has no close"),
        ("HF7*", "later"),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("holdfast_checks = taks", "holdfast_checks: 'taks' is no check: did you mean tasks?"),
        ("holdfast_grace = long", "holdfast_grace must be a number of seconds, not 'long'"),
        ("holdfast_grace = -1", "holdfast_grace must be a number of seconds, zero or more"),
        ("holdfast_ignore = HF102", "holdfast_ignore: 'HF102' is not 'pattern: reason'"),
        ("holdfast_ignore = HF109: known", "no bug kind is called 'HF109'"),
    ],
    ids=["check", "grace", "negative", "no-reason", "code"],
)
def test_wrong_lines_of_the_ini_file_are_a_usage_error(
    collect: Collect, line: str, said: str
) -> None:
    items = collect("def test_it(): ...", line)
    with pytest.raises(pytest.UsageError) as caught:
        asked(items)
    assert str(caught.value).startswith(f"in the ini file: {said}")


def test_an_ignore_of_any_level_covers_a_leak(collect: Collect) -> None:
    source = "@pytest.mark.leaks(ignore='HF102', reason='known')\ndef test_it(): ...\n"
    of = asked(collect(source, "holdfast_ignore = HF721: known"))["test_it"]
    other = a_leak("HF731")
    assert of.sift([a_leak("HF102"), other, a_leak("HF721")]) == [other]


# --- stale ignores -------------------------------------------------------------------------------

IGNORING = """
@pytest.mark.leaks(ignore=["HF102", "HF721"], reason="class")
class TestIt:
    def test_one(self): ...
    def test_two(self): ...

@pytest.mark.leaks(ignore="HF731", reason="own")
@pytest.mark.parametrize("n", [1, 2])
def test_three(n): ...
"""


def test_an_ignore_is_stale_if_no_test_that_it_is_for_needs_it(collect: Collect) -> None:
    items = collect(IGNORING, "holdfast_ignore = nobody.py: ini")
    asking = Asking(items["TestIt::test_one"].config)
    for name, item in items.items():
        leaks = [a_leak("HF721")] if name == "TestIt::test_two" else []
        assert asking.of(item).sift(leaks) == []
        asking.ran(item)
    file = "test_an_ignore_is_stale_if_no_test_that_it_is_for_needs_it.py"
    told = stale(asking.uses(items.values()))
    tail = "matches nothing any more: take it out (its reason was:"
    assert told == [
        f"the ini file: ignore 'nobody.py' {tail} ini)",
        f"{file}::TestIt: ignore 'HF102' {tail} class)",
        f"{file}::test_three: ignore 'HF731' {tail} own)",
    ]


def test_an_ignore_is_not_stale_because_a_farther_one_has_it_too(collect: Collect) -> None:
    source = "@pytest.mark.leaks(ignore='HF102', reason='own')\ndef test_it(): ...\n"
    items = collect(source, "holdfast_ignore = HF1*: ini")
    asking = Asking(items["test_it"].config)
    assert asking.of(items["test_it"]).sift([a_leak()]) == []
    asking.ran(items["test_it"])
    assert stale(asking.uses(items.values())) == []


def test_half_of_the_tests_prove_nothing(collect: Collect) -> None:
    items = collect(IGNORING, "holdfast_ignore = nobody.py: ini")
    asking = Asking(items["TestIt::test_one"].config)
    some = [items["TestIt::test_one"], items["test_three[1]"]]
    for item in some:
        asking.of(item).sift([])
        asking.ran(item)
    assert stale(asking.uses(some, deselected=set(items.values()) - set(some))) == []


def test_a_narrow_run_judges_what_it_can_see(collect: Collect) -> None:
    source = IGNORING + "@pytest.mark.leaks(ignore='HF751', reason='x')\ndef test_four(): ...\n"
    items = collect(source, "holdfast_ignore = nobody.py: ini")
    asking = Asking(items["test_four"].config)
    for item in items.values():
        asking.of(item).sift([])
        asking.ran(item)
    uses = asking.uses(items.values())
    assert len(stale(uses, "suite")) == 5
    assert len(stale(uses, "module")) == 4
    (told,) = stale(uses, "test")
    assert "test_four: ignore 'HF751'" in told


def test_the_workers_of_xdist_know_a_part_each(collect: Collect) -> None:
    items = collect(IGNORING)
    one, two = "TestIt::test_one", "TestIt::test_two"
    uses = []
    for mine, code in ((one, "HF102"), (two, "HF103")):
        asking = Asking(items[mine].config)
        asking.of(items[mine]).sift([a_leak(code)])
        asking.ran(items[mine])
        uses.append(json.loads(json.dumps(asking.uses(items.values()))))
    assert stale(uses[0]) == stale(uses[1]) == []
    (told,) = stale([*uses[0], *uses[1]])
    assert "TestIt: ignore 'HF721'" in told


@pytest.mark.parametrize(
    ("arguments", "wide"),
    [
        ((), "suite"),
        (("-k", "it"), "suite"),
        (("tests",), "module"),
        (("--ignore=tests",), "module"),
        (("tests/test_it.py::test_it",), "test"),
    ],
    ids=["all", "keyword", "folder", "without", "test"],
)
def test_how_wide_a_run_is_follows_from_what_was_named(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    wide: str,
) -> None:
    pytester.mkdir("tests").joinpath("test_it.py").write_text("def test_it(): ...\n")
    assert reach(with_options(pytester, monkeypatch)().parseconfigure(*arguments)) == wide
