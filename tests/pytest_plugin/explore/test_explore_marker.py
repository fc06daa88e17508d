"""@pytest.mark.explore: what it runs, what it says, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pytest_plugin.inner_pytest import HEAD, INI, LEAN, RACE, Run, replay_arguments, runner

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return runner(pytester)


FAILING = (
    RACE
    + """
@pytest.mark.explore
@pytest.mark.parametrize("word", ["one two"])
async def test_order(word):
    seen = await race()
    assert seen == ["quick", "slow"], word
"""
)


def test_a_failure_shows_the_assertion_the_schedule_and_the_line_that_replays_it(run: Run) -> None:
    result = run(FAILING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       assert seen == *quick*slow*, word",
            "E       AssertionError: one two",
            "E       assert [[]'slow', 'quick'] == *",
            "HF441  the test fails under this schedule",
            "*test_it.py:16 in test_order",
            "what differs from a normal run:",
            "  1. *took 10 ms before it started a timer",
            "the loop or an external event has to be 10 ms late",
            "*╭─ test_order*",
            "*✗*fails*",
            "found in 2 schedules",
            "replay: pytest 'test_it.py::test_order[[]one two[]]' --handfast-replay=hf1.*",
            "what it is: handfast explain HF441",
        ]
    )


def test_the_replay_line_runs_only_that_schedule(run: Run, pytester: pytest.Pytester) -> None:
    counting = FAILING.replace(
        "    seen = await race()",
        "    with open('runs', 'a') as file:\n        file.write('.')\n    seen = await race()",
    )
    arguments = replay_arguments(run(counting))
    runs = pytester.path / "runs"
    runs.unlink()
    again = pytester.runpytest_inprocess(*arguments, *LEAN)
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(
        ["E       assert [[]'slow', 'quick'] == *", "replayed from its token"]
    )
    assert replay_arguments(again) == arguments
    assert len(runs.read_text()) <= 3  # to see it, to tell it, to show it


def test_the_replay_line_names_the_file_relative_to_the_current_folder(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(FAILING)
    folder = pytester.mkdir("deeper")
    monkeypatch.chdir(folder)
    result = pytester.runpytest_inprocess("--rootdir", str(pytester.path), "../test_it.py", *LEAN)
    test, _ = replay_arguments(result)
    assert test == "../test_it.py::test_order[one two]"


def test_a_token_of_another_test_is_an_error(run: Run, pytester: pytest.Pytester) -> None:
    token = replay_arguments(run(FAILING))[1]
    fine = "@pytest.mark.explore\nasync def test_fine():\n    await asyncio.sleep(1)\n"
    result = run(fine, token)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["--handfast-replay: the token does not fit: *"])
    result = run(fine, "--handfast-replay=garbage")
    result.stdout.fnmatch_lines(["--handfast-replay: 'garbage' is not a token*"])
    result = run(fine + fine.replace("fine", "other"), token)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --handfast-replay is for one test, and 2 *test_fine"])
    refused = (
        "@pytest.mark.explore\nasync def test_it():\n    asyncio.get_running_loop().add_reader"
    )
    result = run(f"{refused}(0, print)\n", token)
    result.stdout.fnmatch_lines(["--handfast-replay: loop.add_reader is not controlled*"])


def test_the_report_and_junit_say_how_much_was_explored(
    run: Run, pytester: pytest.Pytester
) -> None:
    result = run(
        RACE
        + """
@pytest.mark.explore(cancel=True, schedules=40)
async def test_sleeps():
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(1))

@pytest.mark.explore
async def test_order():
    assert await race() == ["quick", "slow"]
""",
        "-rA",
        "--junitxml=junit.xml",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.re_match_lines([r"all \d+ schedules.*; cancelled at \d+ of \d+ points"])
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")
    said = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in cases
    }
    assert "points" in str(said["test_sleeps"]["handfast.explored"])
    assert said["test_order"]["handfast.code"] == "HF441"
    assert str(said["test_order"]["handfast.token"]).startswith("hf1.")


def test_verdicts_without_an_exception_are_failures_with_their_code(run: Run) -> None:
    result = run(
        """
@pytest.mark.explore
async def test_stuck():
    await asyncio.Event().wait()
""",
        "--tb=short",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF431 deadlock: 1 task waits*",
            "test_stuck waits for Event.wait at test_it.py:6 in test_stuck",
            "happens in a normal run",
            "FAILED *::test_stuck - Failed: HF431 deadlock*",
        ]
    )


def test_an_unretrieved_error_is_shown_without_frames_of_the_explorer(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(elsewhere="async def fails():\n    raise ValueError('lost')\n")
    result = run(
        """
from elsewhere import fails

@pytest.mark.explore
async def test_lost():
    task = asyncio.create_task(fails())
    await asyncio.sleep(1)
    assert task.done()
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       ValueError: lost", "HF601  *"])
    assert "handfast/_explore" not in result.stdout.str()
    assert "pytest_plugin/explore/item.py" not in result.stdout.str()


def test_wrong_use_is_an_error_that_names_the_argument(run: Run) -> None:
    cases = {
        "": ("def", "test_it is not async, and only an async test can be explored"),
        "(schedule=3)": ("async def", "'schedule' is not an argument: did you mean schedules?"),
        "(zzz=3)": ("async def", "'zzz' is not an argument; use one of schedules, *"),
        "(100)": ("async def", "takes keyword arguments only, not 100"),
        "(schedules='many')": ("async def", "schedules='many': must be a whole number"),
        "(seconds='long')": ("async def", "seconds='long': must be a number of seconds"),
        "(stall=-1)": ("async def", "stall=-1: lateness is 0 or more seconds"),
        "(workers=0)": ("async def", "workers=0: must be more than 0"),
        "(cancel='never')": ("async def", "cancel='never': use False, True, 'double' or 'main'"),
        "(model='x')": ("async def", "model='x': use one of strict, latency"),
        "(strategy='x')": ("async def", "strategy='x': use one of dfs, portfolio, *"),
        "(faults=['x'])": ("async def", "faults='x': use one of reset, eof, executor, kill"),
        "(faults=3)": ("async def", "faults=3: must be a list of strings"),
        "(ignore=['HF9'])": ("async def", "ignore: no bug kind is called 'HF9'*"),
        "(ignore=[9])": ("async def", "ignore: 9 is not a string"),
        "(invariant=3)": ("async def", "invariant=3: must be a function without arguments"),
    }
    source = "".join(
        f"class Test{number}:\n    @pytest.mark.explore{arguments}\n    {kind} test_it(self): ...\n"
        for number, (arguments, (kind, _)) in enumerate(cases.items())
    )
    source += """
import unittest
class TestOld(unittest.TestCase):
    @pytest.mark.explore
    async def test_it(self): ...
"""
    result = run(source)
    result.assert_outcomes(errors=len(cases) + 1)
    words = [what for _, what in cases.values()]
    words.append("a unittest.TestCase cannot be explored: write the test as a plain function")
    prefix = "usage error: [@]pytest.mark.explore: "
    result.stdout.fnmatch_lines([prefix + what.replace("[", "[[]") for what in words])
    assert "During handling" not in result.stdout.str()


def test_uncontrolled_io_is_named_with_a_way_to_allow_it(run: Run) -> None:
    source = """
import socket

@pytest.mark.explore(schedules=3REAL)
async def test_reader():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop = asyncio.get_running_loop()
        heard = loop.create_future()
        loop.add_reader(ours, heard.set_result, None)
        theirs.send(b"x")
        await heard
        loop.remove_reader(ours)
"""
    result = run(source.replace("REAL", ""))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "loop.add_reader is not controlled: *real_io=True*",
            "*called at *test_it.py:12 in test_reader",
        ]
    )
    result = run(source.replace("REAL", ", real_io=True"), "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*real I/O were not tested*"])


def test_skip_and_xfail_inside_the_test_work_as_usual(run: Run, pytester: pytest.Pytester) -> None:
    result = run(
        RACE
        + """
@pytest.mark.explore
async def test_skips():
    pytest.skip("not today")

@pytest.mark.explore
async def test_xfails():
    pytest.xfail("known")

@pytest.mark.explore
@pytest.mark.xfail(raises=AssertionError)
async def test_expected():
    assert await race() == ["quick", "slow"]
""",
        "-rA",
        "--handfast-html=pages",
    )
    result.assert_outcomes(skipped=1, xfailed=2)
    assert len(list((pytester.path / "pages").iterdir())) == 1
    result.stdout.fnmatch_lines(["SKIPPED * not today", "XFAIL *test_xfails*known"])


def test_the_command_line_overrides_the_schedules_of_all_tests(
    run: Run, pytester: pytest.Pytester
) -> None:
    source = """
@pytest.mark.explore(schedules=2, seconds=0.001)
async def test_it():
    with open("runs", "a") as file:
        file.write(".")
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(5)))
"""
    runs = pytester.path / "runs"
    run(source, "--handfast-schedules=20").assert_outcomes(passed=1)
    assert len(runs.read_text()) == 20
    runs.unlink()
    run(source, "--handfast-seconds=0.1", "--handfast-schedules=3").assert_outcomes(passed=1)
    assert len(runs.read_text()) <= 3
    for wrong in ("--handfast-schedules=0", "--handfast-seconds=soon"):
        result = run(source, wrong)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*argument {wrong.partition('=')[0]}: * above 0"])


def test_marks_of_the_class_are_the_defaults_of_its_tests(run: Run) -> None:
    result = run(
        """
@pytest.mark.explore(schedules=3, cancel=True)
class TestBoth:
    @pytest.mark.explore(schedules=5)
    async def test_own(self):
        await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(5)))

    async def test_inherited(self):
        await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(5)))
""",
        "-rA",
    )
    result.assert_outcomes(passed=2)
    result.stdout.re_match_lines(
        [r"a sample of 5 schedules; .*points", r"a sample of 3 schedules; .*points"]
    )


def test_a_page_is_written_for_each_counterexample(run: Run, pytester: pytest.Pytester) -> None:
    source = FAILING.replace('["one two"]', '["a/b", "a-b"]')
    result = run(source, "--handfast-html=pages/new")
    result.assert_outcomes(failed=2)
    pages = sorted((pytester.path / "pages" / "new").iterdir())
    assert len(pages) == 2
    for page in pages:
        assert "--handfast-replay=hf1." in page.read_text(encoding="utf-8")
        result.stdout.fnmatch_lines([f"page: pages/new/{page.name}"])


def test_a_marker_added_by_another_plugin_counts(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.explore(schedules=3))
"""
    )
    result = run(FAILING.replace("@pytest.mark.explore\n", ""))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["HF441  *"])


def test_collecting_runs_nothing_and_the_marker_is_listed(run: Run) -> None:
    result = run(FAILING, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["*::test_order[[]one two[]]", "1 test collected*"])
    run("", "--markers").stdout.fnmatch_lines(["@pytest.mark.explore(schedules=1000, *"])


def test_an_interrupt_ends_the_session_at_once(run: Run, pytester: pytest.Pytester) -> None:
    source = """
import os, signal

@pytest.mark.explore(cancel=True)
async def test_first():
    with open("runs", "a") as file:
        file.write(".")
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(1)

@pytest.mark.explore
async def test_second():
    open("second", "w").close()
"""
    with pytest.raises(KeyboardInterrupt):  # pytester passes on what ended the inner session
        run(source)
    assert (pytester.path / "runs").read_text() == "."
    assert not (pytester.path / "second").exists()


def test_workers_find_the_same_as_one_process(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = replay_arguments(run(FAILING))
    several = FAILING.replace("explore\n", "explore(workers=2)\n")
    assert replay_arguments(run(several)) == alone
    # With threads about nothing can be forked, and a test's own function cannot be sent.
    monkeypatch.setattr("threading.active_count", lambda: 2)
    assert replay_arguments(run(several)) == alone


def test_a_nondeterministic_test_fails_with_its_first_error(run: Run) -> None:
    result = run(
        """
import os

@pytest.mark.explore
async def test_changing():
    with open("changing", "a") as file:
        file.write(".")
    assert os.path.getsize("changing") > 2, "only at first"
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*AssertionError: only at first", "happens in a normal run"])


def test_a_failure_that_is_not_repeatable_is_a_warning(run: Run) -> None:
    source = """
seen = []

@pytest.mark.explore(schedules=5)
async def test_first_time():
    seen.append(1)
    assert len(seen) != TIMES
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(5)))
"""
    for times in ("1", "3"):
        result = run(source.replace("TIMES", times), "-W", "always")
        result.assert_outcomes(passed=1, warnings=1)
        result.stdout.fnmatch_lines(
            ["*PytestWarning: one schedule failed once and did not fail again*"]
        )


def test_without_a_marked_test_nothing_of_the_explorer_is_imported(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "conftest.py").write_text(
        "import sys\n"
        "def pytest_unconfigure(config):\n"
        "    assert config.pluginmanager.has_plugin('handfast')\n"
        "    assert not config.pluginmanager.has_plugin('handfast-recipes')\n"
        "    found = [m for m in sys.modules if m.startswith(('handfast.explore', 'rich.', 'typer'))]\n"
        "    print('imported:', found)\n"
    )
    (tmp_path / "test_it.py").write_text(HEAD + "def test_it():\n    pass\n")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", *LEAN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "imported: []" in result.stdout


def test_under_xdist_it_finds_and_prints_the_same(pytester: pytest.Pytester) -> None:
    """A worker of xdist has threads, so the test's own workers cannot be forked there."""
    pytester.makeini(INI)
    pytester.makepyfile(
        test_found=HEAD + FAILING.replace("explore\n", "explore(workers=2)\n"),
        test_fine=HEAD
        + "@pytest.mark.explore\nasync def test_fine():\n    await asyncio.sleep(1)\n",
    )
    result = pytester.runpytest_subprocess("-n1", "--strict-markers", *LEAN)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E       assert [[]'slow', 'quick'] == *", "HF441  *", "*╭─ test_*"]
    )
    there = replay_arguments(result)
    result = pytester.runpytest_inprocess(*there, "-p", "no:xdist", *LEAN)
    result.assert_outcomes(failed=1)
    assert replay_arguments(result) == there


def test_with_the_plugin_switched_off_nothing_is_explored(run: Run) -> None:
    result = run(FAILING, "-p", "no:handfast")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["async def functions are not natively supported."])
