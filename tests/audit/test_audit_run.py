"""Whole audits of tiny projects, with real child processes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from handfast._audit.audit import make_plan, run_audit
from handfast._audit.budget import (
    ENDING,
    STARTING,
    STOPPING,
    TRY_SHARE,
    Budget,
    hang_limit,
)
from handfast._audit.observation import Evidence, Observation, Place
from handfast._audit.output.text import text
from handfast._audit.project import Project, find_project
from handfast._audit.retry import tried
from handfast._audit.run_check import run_check
from handfast._audit.run_explore import ordered, run_explore
from handfast._audit.run_leaks import SuiteOutcome, TestRun, run_leaks
from handfast._audit.suite.interpreter import Interpreter
from handfast._audit.suite.runner import SuiteResult, SuiteRunner, result_folder
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.token import Token

PYTHON = Interpreter(sys.executable, "test")
APP = """
import asyncio

class Bot:
    def start(self):
        self._poller = asyncio.create_task(self._poll())

    async def _poll(self):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)

    async def close(self):
        self._poller.cancel()
"""
HEAD = "import asyncio, os, time\nfrom app import Bot\n"
LEAKS = """
async def main():
    Bot().start()
    await asyncio.sleep(0)

def test_start():
    asyncio.run(main())
"""
RACE = """
async def order():
    seen = []
    async def one(number):
        seen.append(await asyncio.to_thread(int, number))
    await asyncio.gather(one(1), one(2))
    assert seen == [1, 2] or os.environ.get("HANDFAST_AUDIT") is None

def test_order():
    asyncio.run(order())
"""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner pytest starts in a third of the time without them."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "bot"
    root.mkdir()
    (root / "app.py").write_text(APP)
    (root / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return root


def test_what_several_tools_find_is_one_issue(root: Path) -> None:
    (root / "test_app.py").write_text(HEAD + LEAKS)
    steps: list[str] = []
    plan = make_plan(root, sys.executable, 600)
    report = run_audit(plan, lambda step, text: steps.append(step))
    (issue,) = report.issues
    assert (issue.codes, issue.tools) == (("HF102", "HF303"), ("leaks", "check"))
    assert str(issue.place) == "app.py:6"
    assert issue.first.command == "pytest test_app.py::test_start --handfast"
    looked_at = report.looked_at
    assert (looked_at.files, looked_at.task_places, looked_at.close_methods) == (1, 1, 1)
    assert (looked_at.tests, looked_at.tasks, looked_at.explored) == (1, 2, 1)
    assert report.notes == []
    assert set(steps) == {"check", "suite", "explore"}
    assert sorted(os.listdir(root)) == ["app.py", "pytest.ini", "test_app.py"]


def test_a_suite_that_fails_hangs_and_ends_its_process_is_run_to_its_end(root: Path) -> None:
    (root / "test_app.py").write_text(
        HEAD
        + "def test_a():\n    raise ConnectionRefusedError('no server')\n"
        + "def test_b():\n    time.sleep(600)\n"
        + "def test_c():\n    os._exit(3)\n"
        + LEAKS
    )
    with result_folder() as folder:
        outcome = run_leaks(SuiteRunner(find_project(root), PYTHON, folder), 120, 3)
    assert [each.code for each in outcome.found] == ["HF102"]
    assert outcome.notes == [
        "suite: test_app.py::test_b did not end within 3 s, and was left out",
        "suite: test_app.py::test_c ends its process, and was left out",
        "suite: 1 of 2 tests fail, and are not explored, such as test_app.py::test_a: "
        "ConnectionRefusedError: no server",
    ]
    assert (outcome.collected, outcome.ran) == (4, 2)
    assert [each.nodeid for each in outcome.async_tests()] == ["test_app.py::test_start"]


def test_a_command_that_does_not_show_the_leak_alone_is_not_printed(root: Path) -> None:
    (root / "test_app.py").write_text(
        HEAD
        + "first = []\nasync def sleep(): await asyncio.sleep(9)\n"
        + "async def start(): first.append(asyncio.create_task(sleep()))\n"
        + "def test_a():\n    first.append(None)\n"
        + "def test_b():\n    if first:\n        asyncio.run(start())\n"
    )
    with result_folder() as folder:
        outcome = run_leaks(SuiteRunner(find_project(root), PYTHON, folder), 300, 30)
    (leak,) = outcome.found
    assert leak.tests == ("test_app.py::test_b",)
    assert leak.command == "pytest --handfast"


def test_a_command_that_was_not_tried_is_that_of_the_whole_suite() -> None:
    leaks = [Observation("leaks", "HF102", "", None, command="one", tests=("t",))] * 2
    stopped = Answers(SuiteResult(timed_out=True))
    whole = ["pytest --handfast"] * 2
    assert [each.command for each in tried(leaks, stopped, 60, {"t": 1.0})] == whole
    assert [each.command for each in tried(leaks, Answers(), 60, {"t": 90.0})] == whole


def test_a_broken_pyproject_and_a_broken_test_file_are_sentences(root: Path) -> None:
    (root / "pytest.ini").unlink()
    (root / "pyproject.toml").write_text("[tool.handfast\n")
    (root / "test_app.py").write_text("import no_such_module\n")
    report = run_audit(make_plan(root, sys.executable, 60))
    toml, check, collect, none = report.notes
    assert toml.startswith("pyproject.toml cannot be read (")
    assert check.startswith("check: not run: ")
    assert collect.startswith("suite: 1 file cannot be collected, such as test_app.py: Module")
    assert none.startswith("suite: no tests ran: ")
    assert report.issues == []


def test_a_conftest_that_fails_is_a_sentence(root: Path) -> None:
    (root / "conftest.py").write_text("raise OSError('no database')\n")
    (root / "test_app.py").write_text(HEAD + LEAKS)
    with result_folder() as folder:
        outcome = run_leaks(SuiteRunner(find_project(root), PYTHON, folder), 60, 30)
    (note,) = outcome.notes
    assert note.startswith("suite: no tests ran: ")
    assert "no database" in note


def test_a_project_without_tests_and_async_code_is_checked(root: Path) -> None:
    (root / "app.py").write_text("x = 1\n")
    (root / "bad.py").write_text("import asyncio\nasyncio.create_task(f(:\n")
    report = run_audit(make_plan(root, sys.executable, 60))
    assert report.looked_at.files == 2
    no_async, bad, no_tests = report.notes
    assert bad.startswith("check: bad.py:2 was not checked: ")
    assert no_async == "no async code was found in this project"
    assert no_tests == "tests: not run: no tests were found"


def test_an_empty_folder_is_a_sentence(tmp_path: Path) -> None:
    assert run_audit(make_plan(tmp_path, sys.executable, 60)).notes == [
        "no async code was found in this project",
        "check: no Python package or module was found in this folder",
        "tests: not run: no tests were found",
    ]


def test_check_stops_when_the_time_is_over(root: Path) -> None:
    assert run_check(find_project(root), Budget(0)).notes == [
        "check: not finished: the time was over; use more --minutes"
    ]


# --- the explorer --------------------------------------------------------------------------------


def test_a_schedule_that_breaks_a_test_is_found(root: Path) -> None:
    (root / "test_app.py").write_text(HEAD + RACE)
    suite = SuiteOutcome(tests={}, collected=1)
    nodeid = "test_app.py::test_order"
    suite.tests[nodeid] = TestRun(nodeid, 0.01, is_async=True, passed=True)
    with result_folder() as folder:
        result = run_explore(SuiteRunner(find_project(root), PYTHON, folder), suite, [], Budget(60))
    (found,) = result.found
    assert (found.tool, found.code, found.evidence) == ("explore", "HF441", Evidence.FAILS)
    assert found.when
    assert re.fullmatch(
        re.escape(f"pytest {nodeid} --handfast-replay=hf1.") + r"\S+", found.command
    )
    assert found.command in found.detail
    assert result.tests == 1
    # Nothing in the project is changed.
    assert sorted(os.listdir(root)) == ["app.py", "pytest.ini", "test_app.py"]


MARKED = """
import asyncio, pytest
from handfast.explore import victim

class Door:
    is_open = False
    async def pass_through(self):
        self.is_open = True
        await asyncio.sleep(1)
        self.is_open = False

@pytest.mark.explore(cancel=True)
async def test_the_door_is_closed():
    door = Door()
    await victim(door.pass_through())
    assert not door.is_open

@pytest.mark.explore
async def test_right():
    await asyncio.sleep(1)

@pytest.mark.xfail
@pytest.mark.explore
async def test_known():
    assert False
"""


def test_what_a_marked_test_finds_is_a_finding_and_no_failure(root: Path) -> None:
    (root / "test_door.py").write_text(MARKED)
    report = run_audit(make_plan(root, sys.executable, 60))
    found, close = report.issues
    assert (found.code, found.tools) == ("HF441", ("explore with cancel",))
    assert found.evidence == Evidence.FAILS
    assert str(found.place) == "test_door.py:16"
    assert found.first.when == "Door.pass_through is cancelled while it waits at 9 (test_door.py:9)"
    assert found.fix.startswith("let it be cancelled there")
    assert found.first.command.startswith("pytest test_door.py::test_the_door_is_closed --handfast")
    assert close.tools == ("check",)
    assert report.notes == []
    assert (report.looked_at.tests, report.looked_at.explored) == (3, 3)
    assert report.looked_at.schedules > 2


def test_a_finding_in_a_library_is_at_the_line_of_the_test(root: Path) -> None:
    suite = suite_of("test_app.py::test_a")
    suite.tests["test_app.py::test_a"].line = 7
    finding = {
        "code": "HF441",
        "message": "fails",
        "where": "/venv/lib/python3.13/site-packages/lib/pool.py:9 in take",
        "token": str(Token(0, Settings(), Plan(), (), 1, "HF441")),
        "replay": "pytest",
        "text": "",
        "confirmed": 1,
    }
    line = {**explored("test_app.py::test_a", "all"), "finding": finding}
    (found,) = run_explore(Answers(SuiteResult([line])), suite, [], Budget(60)).found
    assert str(found.place) == "test_app.py:7"


def test_without_async_tests_or_time_nothing_is_explored(root: Path, tmp_path: Path) -> None:
    runner = SuiteRunner(Project(root), PYTHON, tmp_path)
    suite = SuiteOutcome()
    no_loop = "explore: no test that passed has run an event loop of asyncio"
    assert run_explore(runner, suite, [], Budget(60)).notes == [no_loop]
    suite.tests["a"] = TestRun("a", 1.0, is_async=True, passed=True)
    assert run_explore(runner, suite, [], Budget(3)).notes == [
        "explore: 1 test not explored: the time was over; use more --minutes"
    ]


def test_the_tests_that_other_tools_point_at_are_explored_first(tmp_path: Path) -> None:
    (tmp_path / "test_near.py").write_text("from app.pool import Pool\n")
    (tmp_path / "test_far.py").write_text("from app import pooling\n")
    tests = [
        TestRun("test_far.py::slow", 2.0),
        TestRun("test_far.py::quick", 1.0),
        TestRun("test_near.py::slow", 4.0),
        TestRun("test_gone.py::leaks", 3.0),
    ]
    leak = Observation("leaks", "HF102", "", None, tests=("test_gone.py::leaks",))
    pool = Observation("check", "HF531", "", Place("app/pool.py", 3))
    names = [each.nodeid.partition("_")[2] for each in ordered(tests, [leak, pool], tmp_path)]
    assert names == ["gone.py::leaks", "near.py::slow", "far.py::quick", "far.py::slow"]
    assert ordered(tests, [], tmp_path)[0].seconds == 1.0


# --- the time ------------------------------------------------------------------------------------


def test_the_time_is_shared_out() -> None:
    budget = Budget(100)
    assert 49 < budget.for_suite(alone=False) <= 50
    assert 83 < budget.for_schedules(10) <= 84
    # The whole audit ends in time, also if a run is stopped in its last test.
    alone = budget.for_suite(alone=True)
    assert 99 < alone + STARTING + STOPPING + ENDING + alone * TRY_SHARE <= 100
    assert 1.4 < Budget(3).for_suite(alone=True) <= 1.5
    assert [hang_limit(each) for each in (1, 30, 900)] == [1, 10, 30]


def test_a_run_that_does_not_end_is_stopped(root: Path) -> None:
    (root / "conftest.py").write_text("import time\ntime.sleep(600)\n")
    (root / "test_app.py").write_text(HEAD + LEAKS)
    with result_folder() as folder:
        outcome = run_leaks(SuiteRunner(find_project(root), PYTHON, folder), -3, 30)
    assert outcome.notes == ["suite: no tests ran: pytest did not start in time"]


def test_the_command_undoes_options_that_the_audit_cannot_use(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runner = SuiteRunner(Project(root, addopts=["-n", "4"]), PYTHON, tmp_path)
    assert "-n0" in runner.command([])
    assert "--no-cov" not in runner.command([])
    monkeypatch.setenv("PYTEST_ADDOPTS", "--cov=app")
    assert runner.command(["-x"])[-2:] == ["--no-cov", "-x"]
    monkeypatch.setenv("PYTEST_ADDOPTS", "--junitxml=report.xml")
    assert runner.command([])[-1] == f"--junitxml={tmp_path / 'unread'}"


# --- what the explorer could not do -------------------------------------------------------------


def explored(nodeid: str, extent: str, reason: str = "") -> dict[str, object]:
    return {"event": "explored", "nodeid": nodeid, "extent": extent, "reason": reason} | {
        "schedules": 1,
        "finding": None,
    }


class Answers(SuiteRunner):
    """A runner whose runs have these results."""

    def __init__(self, *results: SuiteResult) -> None:
        super().__init__(Project(Path("/app")), PYTHON, Path("/tmp"))
        self.results = list(results)

    def run(self, *_: object, **options: object) -> SuiteResult:
        return self.results.pop(0)


def suite_of(*names: str, seconds: float = 0.0) -> SuiteOutcome:
    tests = {name: TestRun(name, seconds, is_async=True, passed=True) for name in names}
    return SuiteOutcome(tests=tests)


def test_why_tests_were_not_explored_is_grouped() -> None:
    reasons = ["uses a", "uses a", "uses b", "uses c", "uses d"]
    lines = [explored(f"t{n}", "refused", reason) for n, reason in enumerate(reasons)]
    runner = Answers(SuiteResult([*lines, explored("late", "budget"), explored("all", "all")]))
    result = run_explore(
        runner, suite_of(*(f"t{n}" for n in range(5)), "late", "all"), [], Budget(60)
    )
    assert result.notes == [
        "explore: 2 tests not explored: uses a",
        "explore: 1 test not explored: uses b",
        "explore: 1 test not explored: uses c",
        "explore: 1 test not explored, for other reasons",
        "explore: 1 test not explored: the time was over; use more --minutes",
    ]
    assert (result.tests, result.schedules) == (1, 7)


def test_tests_that_did_not_fit_are_explored_in_a_second_run() -> None:
    runner = Answers(SuiteResult([explored("a", "all")]), SuiteResult([explored("b", "all")]))
    result = run_explore(runner, suite_of("a", "b", seconds=200), [], Budget(1000))
    assert (result.tests, result.notes, runner.results) == (2, [], [])


def ran(nodeid: str, left: int, *, is_async: bool) -> SuiteResult:
    """A run that ends after one test, because the time is over; so many were to run."""
    report = {"event": "report", "test": nodeid, "when": "call", "outcome": "passed", "why": ""}
    return SuiteResult(
        [
            {"event": "collected", "tests": left},
            {"event": "began", "test": nodeid, "line": 1},
            {**report, "is_ours": False, "leaks": []},
            {"event": "ended", "test": nodeid, "seconds": 1, "is_async": is_async, "tasks": 0},
            {"event": "late"},
        ]
    )


def test_the_suite_gets_the_time_of_the_explorer_if_that_has_nothing_to_do() -> None:
    runner = Answers(ran("a", 3, is_async=False), ran("b", 2, is_async=True), SuiteResult())
    outcome = run_leaks(runner, 10, 3, spare=5)
    assert list(outcome.tests) == ["a", "b"]
    assert outcome.notes == ["suite: 1 of 3 tests did not run: the time was over"]
    assert len(runner.results) == 1
    runner = Answers(ran("a", 3, is_async=True), SuiteResult())
    assert list(run_leaks(runner, 10, 3, spare=5).tests) == ["a"]


def test_each_test_that_was_not_explored_is_counted() -> None:
    suite = suite_of("t", "u")
    line = explored("t", "all")

    def notes(*results: SuiteResult) -> list[str]:
        return run_explore(Answers(*results), suite, [], Budget(60)).notes

    assert notes(SuiteResult([line], status=-11, output="a\nb\n\n")) == [
        "explore: 1 test not explored: pytest ended with status -11 (b)"
    ]
    assert notes(SuiteResult(status=4)) == [
        "explore: 2 tests not explored: pytest ended with status 4 (pytest printed nothing)"
    ]
    finished = {"event": "finished"}
    assert notes(SuiteResult([line, finished], status=0)) == [
        "explore: 1 test not explored: no result of the explorer, as for a "
        "test without an event loop of asyncio"
    ]
    failed = {"event": "report", "test": "u", "outcome": "failed"}
    assert notes(SuiteResult([line, failed, finished], status=1)) == [
        "explore: 1 test not explored: a second normal run did not pass"
    ]
    assert notes(SuiteResult([line, {"event": "late"}, finished], status=1)) == [
        "explore: 1 test not explored: the time was over; use more --minutes"
    ]
    assert notes(SuiteResult([line], timed_out=True)) == [
        "explore: 1 test not explored: the time was over; use more --minutes"
    ]
    interrupted = SuiteResult([line], interrupted=True)
    assert notes(interrupted) == ["explore: 1 test not explored: interrupted"]
    assert run_explore(Answers(interrupted), suite, [], Budget(60)).interrupted


def test_an_error_of_handfast_itself_is_not_a_failure_of_the_test() -> None:
    line = {"test": "t", "leaks": [], "outcome": "failed", "why": "TypeError: x", "is_ours": True}
    ended = {"event": "ended", "test": "t", "seconds": 1, "is_async": True, "tasks": 0}
    events: list[dict[str, Any]] = [
        {"event": "collected", "tests": 3},
        {"event": "began", "test": "t"},
        {"event": "report", "when": "call", **line, "outcome": "passed", "is_ours": False},
        {"event": "report", "when": "teardown", **line},
        ended,
        {"event": "late"},
    ]
    outcome = run_leaks(Answers(SuiteResult(events)), 60, 30)
    assert outcome.async_tests()
    assert outcome.notes == [
        "suite: a bug in handfast hides the leaks of 1 test, please report it: TypeError: x",
        "suite: 2 of 3 tests did not run: the time was over",
    ]


def test_what_the_test_leaves_that_was_cut_off_is_not_reported(root: Path) -> None:
    (root / "test_app.py").write_text(
        HEAD
        + LEAKS
        + "def test_waits():\n"
        + "    bot = asyncio.new_event_loop()\n"
        + "    bot.create_task(asyncio.sleep(9))\n"
        + "    try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        pass\n"
    )
    with result_folder() as folder:
        outcome = run_leaks(SuiteRunner(find_project(root), PYTHON, folder), 120, 3)
    assert [each.tests for each in outcome.found] == [("test_app.py::test_start",)]
    assert outcome.notes == [
        "suite: test_app.py::test_waits did not end within 3 s, and was left out"
    ]


@pytest.mark.parametrize("also", ["", "conftest.py", "tests/__init__.py", "pytest.ini"])
def test_the_commands_put_the_folder_on_the_path_where_the_tests_need_it(
    root: Path, also: str
) -> None:
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "tests").mkdir()
    (root / "tests" / "test_app.py").write_text(HEAD + LEAKS)
    if also:
        (root / also).write_text("[pytest]\npythonpath = .\n" if also == "pytest.ini" else "")
    report = run_audit(make_plan(root, sys.executable, 600))
    (issue,) = report.issues
    command = "pytest" if also else "python -m pytest"
    assert issue.first.command == f"{command} tests/test_app.py::test_start --handfast"
    assert f"    {command} --handfast-write-baseline" in text(report).splitlines()[-5]


def test_a_suite_that_ends_early_is_no_lack_of_time() -> None:
    collected = [{"event": "collected", "tests": 3}]
    only_listed = SuiteResult(collected, status=0, output="\n3 tests collected in 0.1s\n")
    assert run_leaks(Answers(only_listed), 60, 30).notes == [
        "suite: 3 of 3 tests did not run: pytest ended early (3 tests collected in 0.1s)"
    ]
    stopping = [
        SuiteResult([*collected, {"event": "began", "test": each, "line": 1}]) for each in "abc"
    ]
    stopping[0].events[0] = {"event": "collected", "tests": 9}
    outcome = run_leaks(Answers(*stopping), 60, 30)
    assert outcome.notes[-1] == "suite: 6 of 9 tests did not run: 3 tests have stopped the run"


def test_a_suite_without_a_result_is_a_sentence() -> None:
    assert run_leaks(Answers(SuiteResult(status=5)), 60, 30).notes == [
        "suite: no tests ran: pytest found none"
    ]
    assert run_leaks(Answers(SuiteResult(status=-11)), 60, 30).notes == [
        "suite: no tests ran: pytest ended with status -11"
    ]
    printed = "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --no\n"
    assert run_leaks(Answers(SuiteResult(status=4, output=printed)), 60, 30).notes == [
        "suite: no tests ran: error: unrecognized arguments: --no"
    ]
