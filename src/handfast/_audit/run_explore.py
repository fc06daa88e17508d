"""The async tests that have passed, under many schedules, for the time that is left."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handfast._audit.budget import Budget
from handfast._audit.observation import Evidence, Observation, Place, Tool, place_in
from handfast._audit.run_leaks import SuiteOutcome, TestRun
from handfast._audit.suite.runner import SuiteResult, SuiteRunner
from handfast._code_owner import code_owner
from handfast._explore.token import Token

# Below this, starting pytest once more is not worth it.
_LEAST = 2.0
# The seconds for one test: at most, and as a factor of its share.
_MOST_SECONDS, _SHARE = 10.0, 1.5
# The share of the time that the tests themselves may take before they are explored.
_NORMAL_SHARE = 0.3
# How many reasons not to explore a test are named.
_MOST_REASONS = 3
_FAILS = "HF441"
_SAFE_TO_CANCEL = "let it be cancelled there: give back what it has in a `finally`"
# How many of the changes that a schedule needs are named.
_MOST_WHEN = 2


@dataclass
class ExploreResult:
    """What the explorer has found, and how much it has run."""

    found: list[Observation] = field(default_factory=list)
    tests: int = 0
    schedules: int = 0
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)


def run_explore(
    runner: SuiteRunner, suite: SuiteOutcome, suspected: Iterable[Observation], budget: Budget
) -> ExploreResult:
    """Explore the tests, those first whose code other tools point at."""
    result = ExploreResult()
    for line in suite.explored:
        _add(line, suite, runner, result)
    waiting = ordered(suite.async_tests(), suspected, runner.project.root)
    if not waiting and not suite.explored:
        result.notes.append("explore: no test that passed has run an event loop of asyncio")
        return result
    explored: list[dict[str, Any]] = []
    late = 0
    missed: Counter[str] = Counter()
    while waiting:
        batch = _affordable(waiting, budget.left * _NORMAL_SHARE)
        normal = sum(each.seconds for each in batch)
        seconds = budget.for_schedules(normal)
        if not batch or seconds < _LEAST:
            break
        run = _run(runner, batch, seconds, seconds + normal)
        lines = list(run.of("explored"))
        explored += lines
        result.interrupted = run.interrupted
        waiting = waiting[len(batch) :]
        missing = {test.nodeid for test in batch} - {line["nodeid"] for line in lines}
        if run.timed_out or any(run.of("late")):
            late += len(missing)
        else:
            missed.update(_why_missing(nodeid, run) for nodeid in missing)
        if run.interrupted or not lines:
            break
    for line in explored:
        _add(line, suite, runner, result)
    for why, count in missed.items():
        result.notes.append(f"explore: {_tests(count)} not explored: {why}")
    result.notes += _notes(explored, late + len(waiting))
    return result


def _run(
    runner: SuiteRunner, batch: list[TestRun], seconds: float, with_tests: float
) -> SuiteResult:
    each = min(_MOST_SECONDS, max(_LEAST, seconds / len(batch) * _SHARE))
    options = [
        f"--handfast-explore={seconds:.1f}s",
        f"--handfast-seconds={each:.1f}",
        "--handfast-explore-cancel",
        "--handfast-explore-no-corpus",  # it is a folder of the project
    ]
    # The tests take as long as before; a search that does not end is stopped by the time.
    return runner.run(options, with_tests, with_tests, only=[test.nodeid for test in batch])


def ordered(tests: list[TestRun], suspected: Iterable[Observation], root: Path) -> list[TestRun]:
    """The tests that a leak names first; then those in a file that names a module with a finding;
    the quick ones first."""
    suspected = list(suspected)
    named = {nodeid for each in suspected for nodeid in each.tests}
    modules = {Path(each.place.path).stem for each in suspected if each.place is not None}
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(modules)))})\b")
    files = {_file(each) for each in tests} if modules else set()
    near = {file for file in files if word.search(_text(root / file))}
    return sorted(
        tests, key=lambda each: (each.nodeid not in named, _file(each) not in near, each.seconds)
    )


def _file(test: TestRun) -> str:
    return test.nodeid.partition("::")[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _affordable(tests: list[TestRun], seconds: float) -> list[TestRun]:
    chosen = []
    for test in tests:
        seconds -= test.seconds
        if seconds < 0:
            break
        chosen.append(test)
    return chosen


def _add(
    line: dict[str, Any], suite: SuiteOutcome, runner: SuiteRunner, result: ExploreResult
) -> None:
    result.schedules += line["schedules"]
    result.tests += line["extent"] in ("all", "sampled", "single")
    if line["finding"] is not None:
        test = suite.tests[line["nodeid"]]
        result.found.append(_observation(test, line["finding"], runner.project.root))


def _observation(test: TestRun, finding: dict[str, Any], root: Path) -> Observation:
    cancels = Token.parse(finding["token"]).plan.cancels
    tool: Tool = "explore with cancel" if cancels else "explore"
    # Without the options that only the audit's own run of pytest needs.
    command = finding["replay"].partition(finding["token"])[0] + finding["token"]
    # A schedule of a marked test was replayed, as a part of the test itself.
    is_sure = finding["confirmed"] or test.is_marked
    return Observation(
        tool=tool,
        code=finding["code"],
        message=finding["message"].partition("\n")[0],
        place=_place(finding["where"], test, root),
        evidence=Evidence.FAILS if is_sure else Evidence.POSSIBLE,
        command=command,
        detail=finding["text"].replace(finding["replay"], command),
        fix=_SAFE_TO_CANCEL if cancels and finding["code"] == _FAILS else "",
        when=_when(finding["text"]),
        tests=(test.nodeid,),
    )


def _when(text: str) -> str:
    """What differs from a normal run; of a library's file only the path inside the library."""
    lines = re.findall(r"^  \d+\. (.+)$", text, re.MULTILINE)[:_MOST_WHEN]
    return "; ".join(re.sub(r"(?<=\()\S*?site-packages[/\\]", "", line) for line in lines)


def _place(where: str, test: TestRun, root: Path) -> Place:
    """The line of the finding; that of the test if it is a line of a library."""
    place = place_in(where, root)
    if place is None or code_owner(str(root / place.path)) != "program":
        place = Place(_file(test), test.line)
    return place


def _notes(explored: list[dict[str, Any]], waiting: int) -> Iterator[str]:
    refused = Counter(each["reason"] for each in explored if each["extent"] == "refused")
    shown = refused.most_common(_MOST_REASONS)
    for reason, count in shown:
        yield f"explore: {_tests(count)} not explored: {reason}"
    if others := sum(refused.values()) - sum(count for _, count in shown):
        yield f"explore: {_tests(others)} not explored, for other reasons"
    late = waiting + sum(each["extent"] == "budget" for each in explored)
    if late:
        yield f"explore: {_tests(late)} not explored: the time was over; use more --minutes"


def _why_missing(nodeid: str, run: SuiteResult) -> str:
    """Why a test of a run has no result of the explorer."""
    if run.interrupted:
        return "interrupted"
    if any(run.of("finished")):
        outcomes = {line["outcome"] for line in run.of("report") if line["test"] == nodeid}
        if outcomes - {"passed"}:
            return "a second normal run did not pass"
        return "no result of the explorer, as for a test without an event loop of asyncio"
    lines = [line for line in run.output.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else "pytest printed nothing"
    return f"pytest ended with status {run.status} ({last})"


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count:,} tests"
