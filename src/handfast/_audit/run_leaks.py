"""The suite once, with the leak detector in report mode.

A test that hangs is left out, and the run goes on behind it. What the tests were is the basis for
the explorer.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from handfast._audit.budget import TRY_SHARE
from handfast._audit.observation import Evidence, Observation
from handfast._audit.retry import WHOLE_SUITE, leaks_of, place_of, tried
from handfast._audit.suite.runner import SuiteResult, SuiteRunner
from handfast._leaks.leak import MADE_FOR, Leak
from handfast._leaks.summary import by_origin

# After so many tests that hang or end the process, the rest is not worth the time.
_MOST_STOPPED = 3
# The seconds for trying the commands that show a leak, if the suite has left so many.
_LEAST_TRIES = 5.0
# The exit status of pytest if there are no tests.
_NO_TESTS = 5
# An exception in the output of pytest, with its message.
_ERROR = re.compile(
    r"\b[\w.]*(?:Error|Warning|Exception|Exit): .+|^ERROR: .+|\berror: .+", re.MULTILINE
)


@dataclass
class TestRun:
    """One test of the suite."""

    __test__ = False

    nodeid: str
    seconds: float = 0.0
    line: int = 1
    tasks: int = 0
    is_async: bool = False
    # Whether the suite's own run has explored it: `@pytest.mark.explore`.
    is_marked: bool = False
    failed: str = ""
    ended: bool = False
    passed: bool = False


@dataclass
class SuiteOutcome:
    """What the run of the suite has shown."""

    found: list[Observation] = field(default_factory=list)
    tests: dict[str, TestRun] = field(default_factory=dict)
    # What `@pytest.mark.explore` has shown.
    explored: list[dict[str, Any]] = field(default_factory=list)
    # Tests that hang or end the process, and which of the two.
    stopped: dict[str, str] = field(default_factory=dict)
    # Tests after which handfast itself has failed, with its error.
    own_errors: dict[str, str] = field(default_factory=dict)
    collected: int = 0
    # Whether the tests need the project's folder on the path, as `python -m pytest` puts it there.
    needs_folder: bool = False
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def ran(self) -> int:
        return sum(test.ended for test in self.tests.values())

    @property
    def tasks(self) -> int:
        return sum(test.tasks for test in self.tests.values())

    def async_tests(self) -> list[TestRun]:
        """Those that passed and ran an event loop."""
        tests = self.tests.values()
        return [each for each in tests if each.is_async and each.passed and not each.is_marked]


def run_leaks(
    runner: SuiteRunner, seconds: float, test_seconds: float, spare: float = 0.0
) -> SuiteOutcome:
    """Run the suite for at most so many seconds. A test that needs more than `test_seconds` hangs.

    The `spare` seconds are those of the explorer: if these tests leave it nothing to do, more run.
    """
    outcome = SuiteOutcome()
    leaks: list[Leak] = []
    left = seconds
    while True:
        # What has run is not run again after a test that stopped the run.
        done = list(outcome.tests)
        result = runner.run(["--handfast=report"], left, test_seconds, skip=done)
        _read(result, outcome)
        leaks += (each for each in leaks_of(result) if _test_of(each) != result.cut_test)
        left -= result.seconds
        stopped_in = _stopped_in(result)
        if result.interrupted:
            break
        if not stopped_in:
            if not (any(result.of("late")) and spare) or outcome.async_tests():
                break
            left, spare = spare, 0.0
            continue
        how = f"did not end within {test_seconds:.3g} s" if result.hung_test else "ends its process"
        outcome.stopped[stopped_in] = how
        if len(outcome.stopped) >= _MOST_STOPPED or left < test_seconds:
            break
    found = list(_observations(leaks, runner))
    # Not after Ctrl-C. A fifth of the time is enough for a few tests; of a short one, more.
    tries = max(seconds * TRY_SHARE, min(left, _LEAST_TRIES))
    seconds = 0.0 if result.interrupted else tries
    outcome.found = list(tried(found, runner, seconds, _costs(result, outcome)))
    outcome.interrupted = result.interrupted or runner.interrupted
    outcome.notes = list(_notes(outcome, result))
    return outcome


def _costs(result: SuiteResult, outcome: SuiteOutcome) -> dict[str, float]:
    """The seconds that a run of each test alone will take: most of them are pytest's start."""
    ran = (outcome.tests[line["test"]].seconds for line in result.of("ended"))
    start = max(0.0, result.seconds - sum(ran))
    return {name: start + test.seconds for name, test in outcome.tests.items()}


def _stopped_in(result: SuiteResult) -> str:
    """The test that has stopped the run, if one has."""
    if result.hung_test or result.timed_out:
        return result.hung_test
    ended = {line["test"] for line in result.of("ended")}
    return next((line["test"] for line in result.of("began") if line["test"] not in ended), "")


def _read(result: SuiteResult, outcome: SuiteOutcome) -> None:
    outcome.collected = max(
        outcome.collected, len(outcome.tests) + sum(e["tests"] for e in result.of("collected"))
    )
    outcome.needs_folder |= any(line.get("needs_folder") for line in result.of("collected"))
    tests = outcome.tests
    for line in result.of("began"):
        tests[line["test"]] = TestRun(line["test"], line=line.get("line", 1))
    for line in result.of("ended"):
        test = tests[line["test"]]
        test.ended, test.seconds = True, line["seconds"]
        test.is_async, test.tasks = line["is_async"], line["tasks"]
    for line in result.of("report"):
        if line["test"] == result.cut_test:
            continue
        test = tests[line["test"]]
        test.passed = test.passed or (line["when"] == "call" and line["outcome"] == "passed")
        if line["is_ours"]:
            outcome.own_errors[line["test"]] = line["why"]
        elif line["outcome"] == "failed":
            test.failed = test.failed or line["why"] or "no message"
    for line in result.of("explored"):
        tests[line["nodeid"]].is_marked = True
        outcome.explored.append(line)
    for test in tests.values():
        test.passed = test.passed and test.ended and not test.failed


# --- leaks as observations -----------------------------------------------------------------------


def _observations(leaks: list[Leak], runner: SuiteRunner) -> Iterator[Observation]:
    for group in by_origin(leaks):
        leak = group[0]
        tests = tuple(dict.fromkeys(_test_of(each) for each in group if each.owner))
        # An error that was not read has no end that could be awaited.
        exists = "" if leak.code.startswith("HF6") else "still exists "
        when = f"after {len(tests)} tests" if tests[1:] else "after the test"
        command = f"pytest {shlex.quote(tests[0])} --handfast" if tests else WHOLE_SUITE
        yield Observation(
            tool="leaks",
            code=leak.code,
            message=f"{leak.what}: {exists}{when}",
            place=place_of(leak, runner),
            evidence=Evidence.SEEN,
            command=command,
            detail=str(leak),
            tests=tests,
        )


def _test_of(leak: Leak) -> str:
    """The test; of a fixture that outlives tests, the one that it was made for."""
    return leak.owner.rpartition(MADE_FOR)[2]


# --- notes ---------------------------------------------------------------------------------------


def _notes(outcome: SuiteOutcome, result: SuiteResult) -> Iterator[str]:
    if broken := list(result.of("broken")):
        files = "1 file" if len(broken) == 1 else f"{len(broken)} files"
        where, why = broken[0]["where"], broken[0]["why"]
        yield f"suite: {files} cannot be collected, such as {where}: {why}"
    for test, how in outcome.stopped.items():
        yield f"suite: {test} {how}, and was left out"
    for why in [*outcome.own_errors.values()][:1]:
        count = len(outcome.own_errors)
        tests = "1 test" if count == 1 else f"{count} tests"
        yield f"suite: a bug in handfast hides the leaks of {tests}, please report it: {why}"
    found = {line["nodeid"] for line in outcome.explored if line["finding"] is not None}
    failed = [each for each in outcome.tests.values() if each.failed and each.nodeid not in found]
    if failed:
        first = failed[0]
        yield (
            f"suite: {len(failed)} of {outcome.ran} tests fail, and are not explored, such as "
            f"{first.nodeid}: {first.failed}"
        )
    missing = outcome.collected - outcome.ran - len(outcome.stopped)
    if outcome.interrupted:
        yield f"suite: interrupted after {outcome.ran} of {outcome.collected} tests"
    elif not outcome.collected:
        yield f"suite: no tests ran: {_why_none(result)}"
    elif missing > 0:
        yield f"suite: {missing} of {outcome.collected} tests did not run: {_why_missing(outcome, result)}"


def _why_missing(outcome: SuiteOutcome, result: SuiteResult) -> str:
    if len(outcome.stopped) >= _MOST_STOPPED:
        return f"{len(outcome.stopped)} tests have stopped the run"
    if any(result.of("late")) or result.timed_out or outcome.stopped:
        return "the time was over"
    return f"pytest ended early ({_last_error(result)})"


def _why_none(result: SuiteResult) -> str:
    if result.status == _NO_TESTS:
        return "pytest found none"
    return "pytest did not start in time" if result.timed_out else _last_error(result)


def _last_error(result: SuiteResult) -> str:
    """The last error that pytest prints."""
    named = _ERROR.findall(result.output)
    lines = named or [line for line in result.output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"pytest ended with status {result.status}"
