"""`--handfast-explore`: the order in which tests of several classes and modules are explored."""

from __future__ import annotations

import re

import pytest

from handfast.pytest_plugin.explore.suite import explorer as suite_explorer
from tests.pytest_plugin.explore.inner_suites import UNORDERED, Explore, explorer, summary

pytest_plugins = ["pytester"]
explore = pytest.fixture(explorer)

# Runs a test whose name ends with "elsewhere" without asyncio, as a plugin for another loop does.
ELSEWHERE = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if pyfuncitem.name.endswith("elsewhere"):
        with pytest.raises(StopIteration):
            pyfuncitem.obj().send(None)
        return True
"""

CLASSES = (
    UNORDERED
    + """
@pytest.fixture(scope="class", autouse=True)
def shared(request):
    print("set up", request.node.name)
    yield
    print("torn down", request.node.name)
class TestFirst:
    @pytest.mark.asyncio
    async def test_it(self):
        assert len(await results()) == 2
    async def test_elsewhere(self):
        pass
class TestSecond(TestFirst):
    pass
"""
)


def test_a_class_whose_last_test_is_not_explored(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    """Its fixtures are torn down before the next class is explored."""
    pytester.makeconftest(ELSEWHERE)
    result = explore(CLASSES, "--handfast-schedules=30", "-s")
    result.assert_outcomes(passed=4)
    assert "2 sampled" in summary(result)[0]
    reason = "brings its own event loop (a loop that is not asyncio's)"
    assert summary(result)[1] == f"2 not explored: 2 {reason}"
    events = re.findall(r"(set up|torn down) (Test\w+)", result.stdout.str())
    assert len(events) == 12
    for (began, first), (ended, second) in zip(events[::2], events[1::2], strict=True):
        assert (began, ended, first) == ("set up", "torn down", second)


def test_a_test_with_one_schedule_is_run_once_more(explore: Explore) -> None:
    result = explore(
        """
RUNS = []
@pytest.mark.asyncio
async def test_it():
    RUNS.append(1)
    print(len(RUNS), "runs")
""",
        "-s",
    )
    assert "1 with one schedule only" in summary(result)[0]
    assert re.findall(r"(\d) runs", result.stdout.str()) == ["1", "2"]


def test_a_test_that_is_not_on_asyncio_needs_no_time(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(ELSEWHERE)
    result = explore(CLASSES, explore="--handfast-explore=0.000001")
    assert "2 not explored: 2 brings its own event loop" in result.stdout.str()
    assert "2 not explored: the time was over" in summary(result)


class Clock:
    spent = 0.0

    def __call__(self) -> float:
        return self.spent


def test_a_test_that_takes_very_long_is_looked_at_last(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_explorer, "cpu_seconds", Clock())
    result = explore(
        """
from handfast.pytest_plugin.explore.suite import explorer as suite_explorer
@pytest.mark.asyncio
@pytest.mark.parametrize("n", [1, 1000, 2])
async def test_it(n):
    suite_explorer.cpu_seconds.spent += n
    print(f"takes {n} s")
""",
        "-s",
    )
    assert "3 with one schedule only" in summary(result)[0]
    order = re.findall(r"takes (\d+) s", result.stdout.str())
    assert order == ["1", "1000", "2", "1", "2", "1000"]
