"""`pytest --handfast` from the outside: what fails, what is printed, what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Imported before any inner run: pytester forgets what was imported inside one.
import handfast.pytest_plugin.leaks.plugin
import handfast.pytest_plugin.leaks.reporting  # noqa: F401
from handfast import _asyncio_internals
from handfast._leaks.audit import Audit
from tests.pytest_plugin.inner_pytest import HEAD, INI, LEAN

LEAKY = """
async def poll():
    await asyncio.sleep(3600)

@pytest.mark.asyncio
async def test_leaks():
    asyncio.create_task(poll(), name="poll")
"""
CLEAN = """
@pytest.mark.asyncio
async def test_is_clean():
    await asyncio.create_task(asyncio.sleep(0))
"""
pytest_plugins = ["pytester"]

SECTION = "*handfast: leaks*"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Writes a suite and runs it in this process, with a grace of a millisecond."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    pytester.makeini(INI + "handfast_grace = 0.001\n")

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + source)
        return pytester.runpytest_inprocess("--strict-markers", *LEAN, *arguments)

    return run


def test_without_the_option_nothing_is_checked(run: Run) -> None:
    result = run(
        LEAKY + "def test_off(pytestconfig):\n"
        "    assert not pytestconfig.pluginmanager.has_plugin('handfast-leaks')\n"
    )
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line(SECTION)


def test_a_leak_fails_the_test_at_its_teardown_and_is_shown_in_full(run: Run) -> None:
    result = run(LEAKY + CLEAN, "--handfast")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_leaks*",
            "1 leak: HF102 task-left-over",
            "HF102 task-left-over: task 'poll' running poll",
            "    left by     test_it.py::test_leaks",
            "    * test_it.py:9 in test_leaks",
            '                    asyncio.create_task(poll(), name="poll")',
            "    waiting at  test_it.py:5 in poll",
        ]
    )
    assert result.ret == 1


def test_report_mode_fails_nothing_and_groups_the_leaks_by_line(run: Run) -> None:
    source = LEAKY.replace(
        "@pytest.mark.asyncio", '@pytest.mark.parametrize("n", range(3))\n@pytest.mark.asyncio'
    ).replace("test_leaks():", "test_leaks(n):")
    other = LEAKY.replace("test_leaks", "test_other").replace("poll", "look")
    result = run(other + source, "--handfast=report")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            SECTION,
            "3  HF102 task-left-over  test_it.py:* in test_leaks",
            "   left by 3 tests or fixtures, such as test_it.py::test_leaks?0?",
            "1  HF102 task-left-over  test_it.py:9 in test_other",
        ]
    )


def test_report_mode_says_that_there_are_no_leaks(run: Run) -> None:
    result = run(CLEAN, "--handfast=report")
    result.stdout.fnmatch_lines([SECTION, "no leaks in 1 tests"])


def test_under_xdist_the_leaks_of_all_workers_are_reported(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI + "handfast_grace = 0.001\n")
    pytester.makepyfile(test_it=HEAD + LEAKY + CLEAN)
    result = pytester.runpytest_subprocess("--handfast=report", "-n2", *LEAN)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([SECTION, "1  HF102 task-left-over  test_it.py:9 in test_leaks"])


# --- a test's own failure ------------------------------------------------------------------------


def test_a_failed_test_keeps_its_failure_and_the_leak_is_shown_below_it(run: Run) -> None:
    result = run(LEAKY + "    assert 'mine' == ''\n", "--handfast")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError*mine*", "*handfast*", "HF102 task-left-over*"])


def test_an_expected_failure_stays_one(run: Run) -> None:
    source = LEAKY.replace("@pytest", "@pytest.mark.xfail\n@pytest") + "    assert 0\n"
    run(source, "--handfast").assert_outcomes(xfailed=1)


def test_a_teardown_that_fails_keeps_its_failure(run: Run) -> None:
    source = """
@pytest.fixture
def broken():
    yield
    raise KeyError("teardown")
"""
    result = run(source + LEAKY.replace("test_leaks()", "test_leaks(broken)"), "--handfast")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E*KeyError: 'teardown'", "*handfast*", "HF102*"])


# --- markers and ignores -------------------------------------------------------------------------


def marked(arguments: str) -> str:
    return LEAKY.replace("@pytest", f"@pytest.mark.leaks({arguments})\n@pytest")


def test_an_ignored_leak_fails_nothing(run: Run) -> None:
    run(marked("ignore='HF102', reason='known'"), "--handfast").assert_outcomes(passed=1)


def test_an_unused_ignore_fails_the_run(run: Run) -> None:
    source = CLEAN.replace("@pytest", "@pytest.mark.leaks(ignore='HF102', reason='known')\n@pytest")
    result = run(source, "--handfast")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_is_clean: ignore 'HF102' matches no leak any more*known*"])
    assert result.ret == 1


def test_an_ignore_of_a_skipped_test_is_not_unused(run: Run) -> None:
    source = marked("ignore='HF102', reason='known'").replace(
        "@pytest", "@pytest.mark.skip\n@pytest"
    )
    assert run(source, "--handfast").ret == 0


def test_an_ignore_without_a_reason_fails_the_test(run: Run) -> None:
    result = run(marked("ignore='HF102'"), "--handfast")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.leaks*needs a reason*"])


def test_a_check_that_is_not_selected_is_not_made(run: Run) -> None:
    run(marked("check=['timers']"), "--handfast").assert_outcomes(passed=1)


def test_a_task_that_ignores_cancel_does_not_hang_a_test_without_checks(run: Run) -> None:
    source = marked("check=[], reason='nothing to see'").replace(
        "    await asyncio.sleep(3600)",
        "    while True:\n        try:\n            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n            pass",
    )
    run(source + "    await asyncio.sleep(0)\n", "--handfast").assert_outcomes(passed=1)


# --- what is written -----------------------------------------------------------------------------


def test_a_baseline_passes_known_leaks_and_fails_new_ones(
    run: Run, pytester: pytest.Pytester
) -> None:
    result = run(LEAKY, "--handfast-write-baseline", "known.json")
    result.assert_outcomes(passed=1)
    assert len(json.loads((pytester.path / "known.json").read_text())["leaks"]) == 1
    new = LEAKY.replace("test_leaks", "test_new")
    result = run(LEAKY + new, "--handfast", "--handfast-baseline", "known.json")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_new*", "known from the baseline: 1"])


def test_entries_of_the_baseline_that_no_longer_occur_are_counted(run: Run) -> None:
    run(LEAKY, "--handfast-write-baseline", "known.json")
    fixed = LEAKY.replace("    asyncio.create_task(poll()", "    asyncio.sleep(0).close(); (")
    result = run(
        fixed.replace(', name="poll")', ")"), "--handfast", "--handfast-baseline=known.json"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 entry of the baseline no longer occurs*"])


def test_a_missing_baseline_is_a_usage_error(run: Run) -> None:
    result = run(LEAKY, "--handfast", "--handfast-baseline", "nowhere.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no baseline at*nowhere.json*"])


def test_the_junit_file_has_the_leak_as_a_property(run: Run, pytester: pytest.Pytester) -> None:
    run(LEAKY, "--handfast=report", "--junitxml=junit.xml")
    text = (pytester.path / "junit.xml").read_text()
    assert 'name="handfast.leak" value="HF102 task-left-over: task' in text


def test_on_github_the_line_is_annotated(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = run(LEAKY, "--handfast")
    line = "::error file=test_it.py,line=9,title=HF102 task-left-over::HF102*"
    result.stdout.fnmatch_lines([line])


def test_a_python_that_is_newer_than_the_tested_ones_gets_one_warning(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_asyncio_internals, "TESTED_PYTHONS", ((3, 10),))
    result = run(CLEAN, "--handfast")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([SECTION, "warning: Python 3.* is newer than the newest tested*"])
    assert sum("newest tested" in line for line in result.outlines) == 1


# --- owners ------------------------------------------------------------------------------------


def test_a_leak_on_the_loop_of_a_thread_belongs_to_the_test(run: Run) -> None:
    source = """
import threading

def test_thread():
    async def main():
        asyncio.create_task(asyncio.Event().wait())
    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
"""
    result = run(source, "--handfast")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["    left by     test_it.py::test_thread"])


def test_a_child_that_asyncio_kills_after_its_loop_has_closed_was_left_running(run: Run) -> None:
    """It may also be reaped then, so that nothing is left to see when the test has ended."""
    source = """
import gc
def test_child():
    asyncio.run(asyncio.create_subprocess_exec("sleep", "600"))
    gc.collect()
"""
    result = run(source, "--handfast", "-W", "ignore")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["HF701 process-left-running: child process * (sleep 600), running"]
    )


def test_a_fixture_of_a_wider_scope_is_checked_after_its_teardown(
    run: Run, pytester: pytest.Pytester
) -> None:
    source = """
import threading

@pytest.fixture(scope="module")
def keeps():
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait)
    thread.start()
    yield
    gate.set()

gate = threading.Event()

@pytest.fixture(scope="module")
def leaks():
    threading.Thread(target=gate.wait).start()

@pytest.fixture(scope="session", autouse=True)
def the_last():
    yield
    gate.set()

def test_first(keeps, leaks): ...
def test_second(keeps): ...
"""
    pytester.makepyfile(test_later="def test_later(): ...")
    result = run(source, "--handfast")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_second*",
            "HF711 thread-left-running: *",
            "    left by     fixture 'leaks' of module scope, made for test_it.py::test_first",
        ]
    )


def test_what_a_fixture_of_a_wider_scope_starts_on_first_use_belongs_to_it(
    run: Run, pytester: pytest.Pytester
) -> None:
    source = """
import threading

class Pool:
    thread = None
    def __init__(self, with_loop=False):
        self.gate = threading.Event()
        self.run = (lambda: asyncio.run(self.wait())) if with_loop else self.gate.wait
    def use(self):
        if self.thread is None:
            self.thread = threading.Thread(target=self.run)
            self.thread.start()
    async def wait(self):
        while not self.gate.is_set():
            await asyncio.sleep(0.001)
    def close(self):
        self.gate.set()
        self.thread.join()

own = threading.Thread(target=(gate := threading.Event()).wait)

@pytest.fixture(scope="session", autouse=True)
def the_last():
    yield
    gate.set()
    pools[0].close()
    own.join()

pools = []

@pytest.fixture(scope="module")
def pool():
    pools.append(Pool())
    return pools[0]

@pytest.fixture(scope="module")
def use():
    pool = Pool(with_loop=True)
    yield lambda: pool.use()
    pool.close()

def test_first(use):
    use()

def test_second(use, pool):
    use()
    pool.use()

def test_own(use):
    own.start()

def test_last(pool):
    pass
"""
    pytester.makepyfile(test_later="def test_later(): ...")
    result = run(source, "--handfast")
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_own*",
            "1 leak: HF711 *",
            "    left by     test_it.py::test_own",
            "*ERROR at teardown of test_last*",
            "1 leak: HF711 *",
            "    left by     fixture 'pool' of module scope, made for test_it.py::test_second",
        ]
    )


def test_explored_tests_are_left_to_the_explorer(run: Run) -> None:
    source = """
@pytest.mark.explore(schedules=5)
async def test_explored():
    await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2))
"""
    result = run(source + CLEAN, "--handfast")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["not checked: leaks of explored tests: *"])


def test_patches_are_removed_when_the_run_has_ended(run: Run) -> None:
    import asyncio

    before = asyncio.BaseEventLoop.create_task, asyncio.Runner.close
    run(LEAKY, "--handfast")
    assert (asyncio.BaseEventLoop.create_task, asyncio.Runner.close) == before


def test_the_guide_shows_what_is_printed(pytester: pytest.Pytester) -> None:
    guide = (Path(__file__).parents[3] / "docs/guides/leaks.md").read_text()
    test = guide.split('```python title="test_bot.py"\n')[1].split("```")[0]
    expected = guide.split('```text title="pytest --handfast"\n')[1].split("```")[0]
    pytester.makeini(INI)
    pytester.makepyfile(test_bot=test)
    result = pytester.runpytest_subprocess("--handfast", *LEAN)
    assert expected in result.stdout.str()


LIMITED = """
import unittest

KEPT = []

def leak():
    async def main():
        KEPT.append(asyncio.create_task(asyncio.sleep(3600)))
    asyncio.run(main())

def test_example():
    leak()

test_example.is_hypothesis_test = True

@pytest.mark.timeout(0.3)
def test_short():
    leak()

@pytest.mark.timeout(timeout=0)
def test_without_a_limit():
    leak()

class TestCase(unittest.TestCase):
    def test_case(self):
        leak()
"""


def test_a_loop_that_closes_inside_a_test_with_a_time_limit_hardly_waits(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    graces: list[float] = []

    def leaked_on(self: Any, loop: Any, checks: Any, grace: float) -> Any:
        graces.append(grace)
        return real(self, loop, checks, grace)

    real = Audit.leaked_on
    monkeypatch.setattr(Audit, "leaked_on", leaked_on)
    pytester.makeini(INI + "handfast_grace = 0.2\nmarkers = timeout\n")
    result = run(LIMITED, "--handfast=report")
    result.assert_outcomes(passed=4)
    assert graces == pytest.approx([0.001, 0.03, 0.2, 0.2])
