"""Each kind of leak under each runner: found under its code, in its test, at the line marked as its
birth, where it stands now; and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leaks.matrix.programs import CORE, PROGRAMS, Program, marked
from tests.leaks.matrix.suites import (
    RUNNERS,
    House,
    Houses,
    Outcome,
    Runner,
    file_text,
    findings,
)

# What an uvloop keeps to itself: it is found, or it is said that nobody looked.
_HIDDEN_BY_UVLOOP = {"timers", "generators", "connections"}

# What leaks here leaks for good: there is nothing to wait for.
GRACE = "holdfast_grace = 0.03"

# Whoever runs the test, what is looked at on request is the whole process, and that takes time.
_ON_REQUEST = ("function", "session", "run")

CASES = [
    (runner, program)
    for runner in RUNNERS.values()
    for program in PROGRAMS.values()
    if (program.name in CORE or not runner.core or program.asked)
    and (not program.asked or runner.name in _ON_REQUEST)
]


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    root = tmp_path_factory.mktemp("matrix")
    names = {runner.house for runner in RUNNERS.values()}
    built = {name: House(root / name, name, GRACE) for name in names}
    for runner, program in CASES:
        built[runner.house].write(
            runner, program.name, file_text(runner, program.head, program.source)
        )
    with Houses(built.values()) as running:
        yield running


@pytest.mark.parametrize(
    ("runner", "program"), CASES, ids=[f"{runner.name}-{program.name}" for runner, program in CASES]
)
def test_found_in_its_test_at_its_line_and_nothing_else(
    houses: Houses, runner: Runner, program: Program
) -> None:
    house = houses[runner.house]
    outcome = house.outcome(runner, program.name)
    found = outcome.findings
    if runner.name == "anyio_" and outcome.status == "failure":
        # Its own runner fails the test for an error that nobody has read: ours comes below that.
        assert "boom" in outcome.text
        owner = f"{runner.name}/test_{program.name}.py::"
        found = [each for each in findings(house.printed) if each.owner.startswith(owner)]
        outcome = Outcome("error", house.printed)
    if runner.house == "uvloop" and program.check in _HIDDEN_BY_UVLOOP and not found:
        assert [line for line in house.printed.splitlines() if "not checked" in line], house.printed
        assert program.check in house.printed
        return
    file = f"{runner.name}/test_{program.name}.py"
    expected = marked(program, house.text(runner, program.name))
    assert sorted(each.code for each in found) == [each.code for each in expected], outcome.text
    assert outcome.status == "error"
    for finding, wanted in zip(sorted(found, key=lambda each: each.code), expected, strict=True):
        assert finding.owner.startswith(f"{file}::{runner.node}"), outcome.text
        assert finding.born.startswith(f"{file}:{wanted.born} in "), outcome.text
        if wanted.stands is not None:
            assert any(f"{file}:{wanted.stands} in " in line for line in finding.stands), (
                outcome.text
            )


@pytest.mark.parametrize("name", sorted({runner.house for runner in RUNNERS.values()}))
def test_no_test_is_told_twice_and_none_is_missing(houses: Houses, name: str) -> None:
    house = houses[name]
    cases = [runner for runner, _ in CASES if runner.house == name]
    assert house.returncode == 1, house.printed
    assert sum(len(found) for found in house._outcomes.values()) == len(cases), house.printed


def test_on_uvloop_it_is_said_that_nobody_saw_the_timers(houses: Houses) -> None:
    if "uvloop_" not in RUNNERS:
        pytest.skip("there is no uvloop here")
    lines = [line for line in houses["uvloop"].printed.splitlines() if "not checked" in line]
    assert any("timers" in line and "uvloop" in line for line in lines), houses["uvloop"].printed


@pytest.mark.parametrize("name", sorted({r.house for r in RUNNERS.values()} - {"uvloop"}))
def test_elsewhere_everything_is_checked(houses: Houses, name: str) -> None:
    assert "not checked" not in houses[name].printed
