"""`pytest --holdfast` from the outside: what fails, what is printed, what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

# Imported before any inner run: pytester forgets what was imported inside one.
import holdfast.pytest_plugin.leak_plugin
import holdfast.pytest_plugin.leak_tidings  # noqa: F401
from tests.pytest_plugin.inner import HEAD, INI, LEAN

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

SECTION = "*holdfast: what was left behind*"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Writes a suite and runs it in this process, with a grace that nobody waits for."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    pytester.makeini(INI + "holdfast_grace = 0.001\n")

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + source)
        return pytester.runpytest_inprocess("--strict-markers", *LEAN, *arguments)

    return run


def test_nothing_is_looked_at_unless_it_is_asked_for(run: Run) -> None:
    result = run(
        LEAKY + "def test_off(pytestconfig):\n"
        "    assert not pytestconfig.pluginmanager.has_plugin('holdfast-leaks')\n"
    )
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line(SECTION)


def test_a_leak_fails_the_test_at_its_teardown_and_is_told_in_full(run: Run) -> None:
    result = run(LEAKY + CLEAN, "--holdfast")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_leaks*",
            "1 thing is left behind: HF102 task-left-over",
            "HF102 task-left-over: task 'poll' running poll",
            "    left by    test_it.py::test_leaks",
            "    born       test_it.py:9 in test_leaks",
            '                   asyncio.create_task(poll(), name="poll")',
            "    stands at  test_it.py:5 in poll",
        ]
    )
    assert result.ret == 1


def test_a_report_fails_nothing_and_sums_up_by_origin_most_first(run: Run) -> None:
    source = LEAKY.replace(
        "@pytest.mark.asyncio", '@pytest.mark.parametrize("n", range(3))\n@pytest.mark.asyncio'
    ).replace("test_leaks():", "test_leaks(n):")
    other = LEAKY.replace("test_leaks", "test_other").replace("poll", "look")
    result = run(other + source, "--holdfast=report")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            SECTION,
            "3  HF102 task-left-over  test_it.py:* in test_leaks",
            "   left by 3 tests or fixtures, such as test_it.py::test_leaks?0?",
            "1  HF102 task-left-over  test_it.py:9 in test_other",
        ]
    )


def test_a_report_with_nothing_to_say_says_so(run: Run) -> None:
    result = run(CLEAN, "--holdfast=report")
    result.stdout.fnmatch_lines([SECTION, "nothing, in 1 tests"])


def test_under_xdist_the_workers_findings_arrive(pytester: pytest.Pytester) -> None:
    pytester.makeini(INI + "holdfast_grace = 0.001\n")
    pytester.makepyfile(test_it=HEAD + LEAKY + CLEAN)
    result = pytester.runpytest_subprocess("--holdfast=report", "-n2", *LEAN)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([SECTION, "1  HF102 task-left-over  test_it.py:9 in test_leaks"])


# --- a test's own failure ------------------------------------------------------------------------


def test_a_test_that_failed_keeps_its_failure_and_the_leak_stands_below_it(run: Run) -> None:
    result = run(LEAKY + "    assert 'mine' == ''\n", "--holdfast")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError*mine*", "*holdfast*", "HF102 task-left-over*"])


def test_an_expected_failure_stays_one(run: Run) -> None:
    source = LEAKY.replace("@pytest", "@pytest.mark.xfail\n@pytest") + "    assert 0\n"
    run(source, "--holdfast").assert_outcomes(xfailed=1)


def test_a_teardown_that_fails_keeps_its_failure(run: Run) -> None:
    source = """
@pytest.fixture
def broken():
    yield
    raise KeyError("teardown")
"""
    result = run(source + LEAKY.replace("test_leaks()", "test_leaks(broken)"), "--holdfast")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E*KeyError: 'teardown'", "*holdfast*", "HF102*"])


# --- markers and ignores -------------------------------------------------------------------------


def marked(arguments: str) -> str:
    return LEAKY.replace("@pytest", f"@pytest.mark.leaks({arguments})\n@pytest")


def test_an_ignored_leak_fails_nothing(run: Run) -> None:
    run(marked("ignore='HF102', reason='known'"), "--holdfast").assert_outcomes(passed=1)


def test_an_ignore_that_matches_nothing_fails_the_run(run: Run) -> None:
    source = CLEAN.replace("@pytest", "@pytest.mark.leaks(ignore='HF102', reason='known')\n@pytest")
    result = run(source, "--holdfast")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_is_clean: ignore 'HF102' matches nothing any more*known*"])
    assert result.ret == 1


def test_an_ignore_of_a_test_that_was_skipped_is_not_stale(run: Run) -> None:
    source = marked("ignore='HF102', reason='known'").replace(
        "@pytest", "@pytest.mark.skip\n@pytest"
    )
    assert run(source, "--holdfast").ret == 0


def test_an_ignore_without_a_reason_fails_the_test(run: Run) -> None:
    result = run(marked("ignore='HF102'"), "--holdfast")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.leaks*needs a reason*"])


def test_a_check_that_is_not_asked_for_is_not_made(run: Run) -> None:
    run(marked("check=['timers']"), "--holdfast").assert_outcomes(passed=1)


def test_a_stubborn_task_does_not_hang_a_test_that_looks_for_nothing(run: Run) -> None:
    source = marked("check=[], reason='nothing to see'").replace(
        "    await asyncio.sleep(3600)",
        "    while True:\n        try:\n            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n            pass",
    )
    run(source + "    await asyncio.sleep(0)\n", "--holdfast").assert_outcomes(passed=1)


# --- what is written -----------------------------------------------------------------------------


def test_a_baseline_lets_what_is_known_pass_and_fails_what_is_new(
    run: Run, pytester: pytest.Pytester
) -> None:
    result = run(LEAKY, "--holdfast-write-baseline", "known.json")
    result.assert_outcomes(passed=1)
    assert len(json.loads((pytester.path / "known.json").read_text())["leaks"]) == 1
    new = LEAKY.replace("test_leaks", "test_new")
    result = run(LEAKY + new, "--holdfast", "--holdfast-baseline", "known.json")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_new*", "known from the baseline: 1"])


def test_entries_of_the_baseline_that_no_longer_occur_are_counted(run: Run) -> None:
    run(LEAKY, "--holdfast-write-baseline", "known.json")
    fixed = LEAKY.replace("    asyncio.create_task(poll()", "    asyncio.sleep(0).close(); (")
    result = run(
        fixed.replace(', name="poll")', ")"), "--holdfast", "--holdfast-baseline=known.json"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 entry of the baseline no longer occurs*"])


def test_a_baseline_that_is_not_there_is_an_error_of_usage(run: Run) -> None:
    result = run(LEAKY, "--holdfast", "--holdfast-baseline", "nowhere.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no baseline at*nowhere.json*"])


def test_the_junit_file_has_the_leak_as_a_property(run: Run, pytester: pytest.Pytester) -> None:
    run(LEAKY, "--holdfast=report", "--junitxml=junit.xml")
    text = (pytester.path / "junit.xml").read_text()
    assert 'name="holdfast.leak" value="HF102 task-left-over: task' in text


def test_on_github_the_line_is_annotated(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = run(LEAKY, "--holdfast")
    line = "::error file=test_it.py,line=9,title=HF102 task-left-over::HF102*"
    result.stdout.fnmatch_lines([line])


# --- whose it is ---------------------------------------------------------------------------------


def test_what_a_thread_of_the_test_leaves_on_its_loop_is_the_tests(run: Run) -> None:
    source = """
import threading

def test_thread():
    async def main():
        asyncio.create_task(asyncio.Event().wait())
    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join()
"""
    result = run(source, "--holdfast")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["    left by    test_it.py::test_thread"])


def test_a_fixture_of_a_wider_scope_is_judged_when_it_is_torn_down(
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
    result = run(source, "--holdfast")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_second*",
            "HF711 thread-left-running: *",
            "    left by    fixture 'leaks' of module scope, made for test_it.py::test_first",
        ]
    )


def test_explored_tests_are_left_to_the_explorer(run: Run) -> None:
    source = """
@pytest.mark.explore(schedules=5)
async def test_explored():
    await asyncio.gather(asyncio.sleep(0.1), asyncio.sleep(0.2))
"""
    result = run(source + CLEAN, "--holdfast")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["not checked: what explored tests leave behind: *"])


def test_hooks_are_taken_out_when_the_run_has_ended(run: Run) -> None:
    import asyncio

    before = asyncio.BaseEventLoop.create_task, asyncio.Runner.close
    run(LEAKY, "--holdfast")
    assert (asyncio.BaseEventLoop.create_task, asyncio.Runner.close) == before


def test_the_guide_shows_what_is_printed(pytester: pytest.Pytester) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/leaks.md").read_text()
    test = guide.split('```python title="test_bot.py"\n')[1].split("```")[0]
    told = guide.split('```text title="pytest --holdfast"\n')[1].split("```")[0]
    pytester.makeini(INI)
    pytester.makepyfile(test_bot=test)
    result = pytester.runpytest_subprocess("--holdfast", *LEAN)
    assert told in result.stdout.str()
