"""Each kind of leak under each runner: reported with its code, its test, the line that created it and
the line where it waits; and nothing else is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leaks.matrix.leaking_programs import CORE, PROGRAMS, Program, marked
from tests.leaks.matrix.runners import (
    RUNNERS,
    Outcome,
    Runner,
    Suite,
    Suites,
    file_text,
    findings,
)

# What uvloop does not list: it is found, or reported as not checked.
_HIDDEN_BY_UVLOOP = {"timers", "generators", "connections"}

# What leaks here leaks for good: there is nothing to wait for.
GRACE = "handfast_grace = 0.03"

# What is checked on request takes time, and does not depend on the runner.
_ON_REQUEST = ("function", "session", "run")

CASES = [
    (runner, program)
    for runner in RUNNERS.values()
    for program in PROGRAMS.values()
    if (program.name in CORE or not runner.core or program.on_request)
    and (not program.on_request or runner.name in _ON_REQUEST)
]


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suites]:
    root = tmp_path_factory.mktemp("matrix")
    names = {runner.suite for runner in RUNNERS.values()}
    built = {name: Suite(root / name, name, GRACE) for name in names}
    for runner, program in CASES:
        built[runner.suite].write(
            runner, program.name, file_text(runner, program.head, program.source)
        )
    with Suites(built.values()) as running:
        yield running


@pytest.mark.parametrize(
    ("runner", "program"), CASES, ids=[f"{runner.name}-{program.name}" for runner, program in CASES]
)
def test_found_in_its_test_at_its_line_and_nothing_else(
    suites: Suites, runner: Runner, program: Program
) -> None:
    suite = suites[runner.suite]
    outcome = suite.outcome(runner, program.name)
    found = outcome.findings
    if runner.name == "anyio_" and outcome.status == "failure":
        # Its own runner fails the test for an unread error: our report comes below that.
        assert "boom" in outcome.text
        owner = f"{runner.name}/test_{program.name}.py::"
        found = [each for each in findings(suite.printed) if each.owner.startswith(owner)]
        outcome = Outcome("error", suite.printed)
    if runner.suite == "uvloop" and program.check in _HIDDEN_BY_UVLOOP and not found:
        assert [line for line in suite.printed.splitlines() if "not checked" in line], suite.printed
        assert program.check in suite.printed
        return
    file = f"{runner.name}/test_{program.name}.py"
    expected = marked(program, suite.text(runner, program.name))
    assert sorted(each.code for each in found) == [each.code for each in expected], outcome.text
    assert outcome.status == "error"
    for finding, wanted in zip(sorted(found, key=lambda each: each.code), expected, strict=True):
        assert finding.owner.startswith(f"{file}::{runner.node}"), outcome.text
        assert finding.created_at.startswith(f"{file}:{wanted.created_at} in "), outcome.text
        if wanted.waiting_at is not None:
            assert any(f"{file}:{wanted.waiting_at} in " in line for line in finding.waiting_at), (
                outcome.text
            )


@pytest.mark.parametrize("name", sorted({runner.suite for runner in RUNNERS.values()}))
def test_no_test_is_reported_twice_and_none_is_missing(suites: Suites, name: str) -> None:
    suite = suites[name]
    cases = [runner for runner, _ in CASES if runner.suite == name]
    assert suite.returncode == 1, suite.printed
    assert sum(len(found) for found in suite._outcomes.values()) == len(cases), suite.printed


def test_on_uvloop_timers_are_not_checked(suites: Suites) -> None:
    if "uvloop_" not in RUNNERS:
        pytest.skip("there is no uvloop here")
    lines = [line for line in suites["uvloop"].printed.splitlines() if "not checked" in line]
    assert any("timers" in line and "uvloop" in line for line in lines), suites["uvloop"].printed


@pytest.mark.parametrize("name", sorted({r.suite for r in RUNNERS.values()} - {"uvloop"}))
def test_elsewhere_everything_is_checked(suites: Suites, name: str) -> None:
    assert "not checked" not in suites[name].printed
