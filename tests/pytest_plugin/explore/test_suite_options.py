"""`--handfast-explore` beside the other options of pytest: selection, xdist, replay, baseline."""

from __future__ import annotations

import json

import pytest

from tests.pytest_plugin.explore.inner_suites import STRICT, UNORDERED, Explore, explorer, summary
from tests.pytest_plugin.inner_pytest import LEAN, replay_arguments

pytest_plugins = ["pytester"]

OTHER = """
@pytest.mark.asyncio
async def test_quiet():
    assert sorted(await results()) == [1, 2]
"""
TWO = STRICT + STRICT.replace(UNORDERED, "").replace("test_order", "test_second")


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


def explored(result: pytest.RunResult) -> str:
    """The first line of the summary."""
    return summary(result)[0]


def test_only_what_is_selected_is_explored(explore: Explore) -> None:
    result = explore(STRICT + OTHER, "-k", "quiet")
    result.assert_outcomes(passed=1, deselected=1)
    assert explored(result).startswith("1 async test,")


def test_x_stops_at_the_first_finding(explore: Explore) -> None:
    result = explore(TWO, "-x")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    assert summary(result)[-1] == "findings: 1 HF441"


def test_x_explores_nothing_after_a_failure(explore: Explore) -> None:
    result = explore("def test_fails():\n    assert 0\n" + STRICT, "-x")
    result.assert_outcomes(failed=1)
    assert "handfast: explored schedules" not in result.stdout.str()


def test_lf_repeats_the_tests_with_findings(explore: Explore) -> None:
    explore(STRICT + OTHER)
    result = explore(STRICT + OTHER, "--lf")
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    assert explored(result).startswith("1 async test,")


def test_what_failed_before_is_explored_first(explore: Explore, pytester: pytest.Pytester) -> None:
    """The other test has more that can be reordered, and so is the first without a history."""
    busy = """
@pytest.mark.asyncio
async def test_busy():
    await asyncio.gather(*(asyncio.to_thread(int, n) for n in range(4)))
"""
    order = []
    for _ in range(2):
        explore(STRICT + busy, "--handfast-explore-json=out.json", "--handfast-schedules=5")
        tests = json.loads((pytester.path / "out.json").read_text())["tests"]
        order.append([each["nodeid"].rpartition("::")[2] for each in tests])
    assert order == [["test_busy", "test_order"], ["test_order", "test_busy"]]


def test_the_budget_is_for_all_tests(explore: Explore) -> None:
    result = explore(STRICT + OTHER, explore="--handfast-explore=0.000001s")
    result.assert_outcomes(passed=2)
    assert "2 not explored: the time was over" in summary(result)


@pytest.mark.parametrize("budget", ["", "0", "-1", "soon", "5 minutes", "nan"])
def test_a_budget_that_is_no_time(explore: Explore, budget: str) -> None:
    result = explore(STRICT, explore=f"--handfast-explore={budget}x")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*use a time such as 90s, 10m or 1h"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_finding_is_one_line_of_the_short_summary_also_on_ci(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    """On a CI system pytest shows the whole message of a failure there."""
    monkeypatch.setenv("CI", "true")
    lines = explore(STRICT, *workers).outlines
    begin = next(n for n, line in enumerate(lines) if "short test summary" in line)
    assert lines[begin + 1].startswith("FAILED test_it.py::test_order - HF441 ")
    assert len(lines) == begin + 3


def test_a_finding_is_replayed(explore: Explore, pytester: pytest.Pytester) -> None:
    found = explore(STRICT + OTHER)
    result = pytester.runpytest_inprocess(*LEAN, *replay_arguments(found))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["HF441  the test fails under this schedule", "replayed from its token"]
    )


@pytest.mark.parametrize("token", ["nonsense", "hf1.", "hf1.AAAA", "hf1.\udc80", "hf9.AAAA"])
def test_a_token_that_is_none(explore: Explore, pytester: pytest.Pytester, token: str) -> None:
    pytester.makepyfile(test_it="import asyncio\nimport pytest\n" + STRICT)
    result = pytester.runpytest_inprocess(*LEAN, f"--handfast-replay={token}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["--handfast-replay: *"])


def test_a_token_is_for_one_test(explore: Explore, pytester: pytest.Pytester) -> None:
    found = explore(STRICT + OTHER)
    token = replay_arguments(found)[-1]
    result = pytester.runpytest_inprocess(*LEAN, token)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is for one test, and 2 tests are selected: *"])


def test_a_token_of_another_test_does_not_fit(explore: Explore, pytester: pytest.Pytester) -> None:
    found = explore(STRICT + OTHER)
    token = replay_arguments(found)[-1]
    result = pytester.runpytest_inprocess(*LEAN, "-k", "quiet", token)
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["--handfast-replay: *"])


def test_known_findings_fail_nothing(explore: Explore, pytester: pytest.Pytester) -> None:
    written = explore(STRICT, "--handfast-explore-write-baseline=known.json")
    written.assert_outcomes(passed=1)
    assert summary(written)[-1].endswith("known.json: 1 findings")
    again = explore(STRICT, "--handfast-explore-baseline=known.json")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["    known from the baseline; pytest test_it.py::test_order *"])
    more = explore(TWO, "--handfast-explore-baseline=known.json")
    assert more.parseoutcomes() == {"passed": 2, "failed": 1}
    more.stdout.fnmatch_lines(["FAILED test_it.py::test_second*"])


def test_xdist_sends_what_was_found(explore: Explore, pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    quiet = OTHER.replace("test_quiet", "test_last")
    pytester.makepyfile(test_it="import asyncio\nimport pytest\n" + TWO + OTHER + quiet)
    result = pytester.runpytest_subprocess(
        *LEAN, "--handfast-explore", "-n2", "--handfast-explore-json=out.json"
    )
    assert result.parseoutcomes() == {"passed": 4, "failed": 2}
    assert explored(result).startswith("4 async tests,")
    assert summary(result)[-1] == "findings: 2 HF441"
    assert len(json.loads((pytester.path / "out.json").read_text())["tests"]) == 4


def test_a_baseline_that_is_missing(explore: Explore) -> None:
    result = explore(STRICT, "--handfast-explore-baseline=none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: there is no baseline at *none.json: *"])


def test_a_file_that_cannot_be_written(explore: Explore) -> None:
    result = explore(
        "@pytest.mark.asyncio\nasync def test_it(): pass\n", "--handfast-explore-json=no/x"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert summary(result)[-1].startswith("not written: ")


def test_a_page_for_a_finding(explore: Explore, pytester: pytest.Pytester) -> None:
    result = explore(STRICT, "--handfast-html=pages", "-o", "junit_family=xunit1")
    (page,) = (pytester.path / "pages").iterdir()
    assert "test_order" in page.read_text(encoding="utf-8")
    result.stdout.fnmatch_lines(
        ["replay: pytest * --handfast-replay=* -o junit_family=xunit1", "page: pages*"]
    )
    result = explore(STRICT, "--handfast-html=test_it.py")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["page: not written to *"])


def test_ctrl_c_prints_what_was_found(explore: Explore, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
import pytest
class Interrupts:
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.failed:
            raise KeyboardInterrupt
def pytest_configure(config):
    config.pluginmanager.register(Interrupts())
"""
    )
    pytester.makepyfile(test_it="import asyncio\nimport pytest\n" + TWO)
    result = pytester.runpytest_subprocess(*LEAN, "--handfast-explore")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert explored(result).startswith("1 async test,")
    assert summary(result)[-1] == "findings: 1 HF441"


def test_ctrl_c_while_a_finding_is_confirmed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from handfast.pytest_plugin.explore.suite import item_explorer

    def interrupt(program: object, found: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(item_explorer, "confirm", interrupt)
    with pytest.raises(KeyboardInterrupt):  # raised again by pytester
        explore(TWO)
    lines = capsys.readouterr().out.splitlines()
    assert "1 not explored: stopped before" in lines
    assert any(
        line.startswith("    not confirmed on asyncio's own loop (0 runs)") for line in lines
    )


def test_a_finding_that_asyncio_does_not_show_fails_nothing(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handfast._explore.hosted.stock import Confirmation
    from handfast.pytest_plugin.explore.suite import item_explorer

    monkeypatch.setattr(item_explorer, "confirm", lambda program, found: Confirmation(0, 7))
    result = explore(STRICT)
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    lines = summary(result)
    assert len(lines) == 5
    assert lines[2] == "findings: none"
    result.stdout.fnmatch_lines(
        [
            "  test_it.py::test_order: HF441 the test fails under this schedule: AssertionError*",
            "    not confirmed on asyncio's own loop (7 runs); pytest test_it.py::test_order *",
        ]
    )


def test_a_long_message_is_cut_in_the_summary(explore: Explore) -> None:
    source = """
@pytest.mark.asyncio
async def test_it():
    explored = type(asyncio.get_running_loop()).__name__ == "HostedLoop"
    if await results() != [1, 2] and explored:
        raise RuntimeError("x" * 100_000)
"""
    lines = summary(explore(UNORDERED + source))
    assert "HF441 the test fails under this schedule: RuntimeError: xxx" in lines[-2]
    assert len(lines[-2]) < 300


def test_the_summary_has_ten_lines_at_most(explore: Explore) -> None:
    """Fifteen reasons for a refusal and a finding."""
    many = "".join(
        f"""
@pytest.mark.asyncio
async def test_{n}():
    error = type("E{n}", (Exception,), {{}})
    if type(asyncio.get_running_loop()).__name__ == "HostedLoop":
        raise error
"""
        for n in range(15)
    )
    result = explore(STRICT + many)
    lines = summary(result)
    assert len(lines) <= 10
    assert any("10 other reasons" in line for line in lines)


def test_a_hook_that_is_cut_stops_only_its_test(
    explore: Explore, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pluggy warns about an error in the old kind of wrapper; anyio's suite makes that an error."""
    from handfast.pytest_plugin.explore.suite import explorer as suite_explorer

    monkeypatch.setattr(suite_explorer, "RUN_SECONDS", 0.2)
    pytester.makeconftest(
        """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    yield
    while call.when == "call" and getattr(item.module, "explored", False):
        pass
"""
    )
    source = """
explored = False
@pytest.mark.filterwarnings("error")
@pytest.mark.asyncio
async def test_slow_report():
    global explored
    explored = type(asyncio.get_running_loop()).__name__ == "HostedLoop"
"""
    result = explore(source + STRICT.replace("async def test_order", "async def test_other"))
    assert "INTERNALERROR" not in result.stdout.str()
    result.assert_outcomes(passed=2)
    assert "2 not explored: 2 a run takes more than 5 s" in summary(result)
