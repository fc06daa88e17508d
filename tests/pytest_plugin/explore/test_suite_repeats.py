"""`--handfast-explore` runs a whole test for each schedule: its set-up, its call and its teardown."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from handfast._explorer_internals import current_loop_record
from handfast.pytest_plugin.explore.suite import item_explorer
from tests.pytest_plugin.explore.inner_suites import UNORDERED, Explore, explorer, summary

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


FRESH = {
    "a plain fixture": """
@pytest.fixture
def seen():
    return []
@pytest.mark.asyncio
async def test_it(seen):
    seen.append(await results())
    assert len(seen) == 1
""",
    "an async fixture": """
import pytest_asyncio
@pytest_asyncio.fixture
async def seen():
    seen = []
    yield seen
    assert len(seen) == 1
@pytest.mark.asyncio
async def test_it(seen):
    seen.append(await results())
""",
    "monkeypatch": """
VALUE = [1]
@pytest.mark.asyncio
async def test_it(monkeypatch):
    assert VALUE == [1]
    monkeypatch.setattr(__import__(__name__), "VALUE", [2])
    await results()
""",
    "tmp_path": """
@pytest.mark.asyncio
async def test_it(tmp_path):
    (tmp_path / "folder").mkdir()
    await results()
""",
    "a mock": """
from unittest.mock import AsyncMock, patch
@pytest.mark.asyncio
@patch("os.getcwd", new_callable=AsyncMock)
async def test_it(mock):
    await mock(await results())
    mock.assert_awaited_once()
""",
    "caplog and capsys": """
import logging
@pytest.mark.asyncio
async def test_it(caplog, capsys):
    print("once")
    logging.getLogger("it").warning("once")
    await results()
    assert capsys.readouterr().out == "once\\n"
    assert len(caplog.records) == 1
""",
    "the instance of a class": """
class TestIt:
    def setup_method(self):
        self.prepared = True
    @pytest.mark.asyncio
    async def test_it(self):
        assert self.prepared and not hasattr(self, "used")
        self.used = await results()
""",
    "setUp of unittest": """
import unittest
class TestIt(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.seen = []
    async def asyncTearDown(self):
        self.assertEqual(len(self.seen), 1)
    async def test_it(self):
        self.seen.append(await results())
""",
}


@pytest.mark.parametrize("what", FRESH)
def test_each_schedule_gets_a_new(explore: Explore, what: str) -> None:
    result = explore(UNORDERED + FRESH[what], "--handfast-schedules=20", "--handfast-seconds=60")
    result.assert_outcomes(passed=1)
    assert summary(result)[0].startswith("1 async test, 20 schedules")
    assert summary(result)[-1] == "findings: none"


def test_wider_fixtures_are_made_once_for_all_schedules(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
import pathlib
@pytest.fixture(scope="module")
def server():
    with open("made", "a") as file:
        file.write(".")
    yield
    with open("ended", "a") as file:
        file.write(".")
@pytest.mark.asyncio
@pytest.mark.parametrize("n", [1, 2])
async def test_it(server, n):
    await results()
""",
        "--handfast-schedules=20",
    )
    result.assert_outcomes(passed=2)
    # In the normal run, for the plain runs, and for the schedules.
    assert Path("made").read_text() == "..."
    assert Path("ended").read_text() == "..."


def test_a_test_that_cannot_be_repeated_is_not_explored(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
SEEN = []
@pytest.mark.asyncio
async def test_it():
    await results()
    SEEN.append(1)
    assert len(SEEN) < 4
"""
    )
    result.assert_outcomes(passed=1)
    assert summary(result)[1] == "1 not explored: 1 not repeatable in one process"
    assert summary(result)[-1] == "findings: none"


def test_tests_that_do_not_pass_are_not_explored(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
@pytest.mark.asyncio
async def test_fails():
    assert await results() == 3
@pytest.mark.asyncio
async def test_skips():
    pytest.skip("no")
@pytest.mark.xfail
@pytest.mark.asyncio
async def test_xfails():
    assert await results() == 3
@pytest.fixture
def broken():
    yield
    assert 0
@pytest.mark.asyncio
async def test_fails_in_teardown(broken):
    await results()
def test_plain():
    pass
"""
    )
    result.assert_outcomes(failed=1, skipped=1, xfailed=1, errors=1, passed=2)
    result.stdout.no_fnmatch_line("handfast: explor*")


def test_a_test_in_which_nothing_can_be_reordered(explore: Explore) -> None:
    result = explore("@pytest.mark.asyncio\nasync def test_it():\n    await asyncio.sleep(5)\n")
    result.assert_outcomes(passed=1)
    assert "1 with one schedule only" in summary(result)[0]


# A global outlives each run: the third one in a process fails.
TWICE = """
SEEN = []
@pytest.mark.asyncio
async def test_it():
    SEEN.append(1)
    assert len(SEEN) <= 2
    assert await results() == [1, 2]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_isolated_schedules_run_in_forks(pytester: pytest.Pytester, explore: Explore) -> None:
    source = UNORDERED + TWICE
    plain = explore(source)
    assert summary(plain)[1] == "1 not explored: 1 not repeatable in one process"
    result = explore(source, "--handfast-explore-isolated")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["HF441  the test fails*", "confirmed on asyncio's own loop*"])
    line = next(each for each in result.outlines if each.startswith("replay: pytest "))
    again = pytester.runpytest_inprocess(*line.split()[2:])
    again.stdout.fnmatch_lines(["HF441  the test fails*", "replayed from its token"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_that_ends_or_hangs_is_a_refusal(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_explorer, "RUN_SECONDS", 0.5)
    source = """
import os, signal
RUNS = []
@pytest.mark.asyncio
async def test_killed():
    RUNS.append(1)
    if len(RUNS) > 1:
        os.kill(os.getpid(), signal.SIGKILL)
@pytest.mark.asyncio
async def test_hangs():
    RUNS.append(1)
    while len(RUNS) > 2:
        pass
"""
    result = explore(source, "--handfast-explore-isolated")
    result.assert_outcomes(passed=2)
    assert summary(result)[1] == (
        "2 not explored: 1 ends its process (exit code -9); 1 a run takes more than 0.5 s"
    )


def test_an_async_fixture_of_wider_scope_is_new_in_each_run(explore: Explore) -> None:
    """Its event loop is one of the run, and is closed at the end of the run."""
    body = """
@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"
@pytest.fixture(scope="module")
async def server():
    loop = asyncio.get_running_loop()
    yield "server"
    assert asyncio.get_running_loop() is loop
@pytest.mark.anyio
async def test_order(server):
    assert sorted(await results()) == [1, 2]
@pytest.mark.anyio
async def test_one(server):
    await asyncio.sleep(0.01)
"""
    result = explore(UNORDERED + body)
    result.assert_outcomes(passed=2)
    assert "1 with one schedule only" in summary(result)[0]
    assert not [line for line in summary(result) if "not explored" in line]
    assert summary(result)[-1] == "findings: none"


def test_a_loop_that_stays_the_current_one_after_a_test(explore: Explore) -> None:
    """It is the run's own: the next one does not get a closed loop, nor one of asyncio's."""
    source = (
        UNORDERED
        + """
def test_old_style():
    try:
        loop = asyncio.get_event_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    assert len(loop.run_until_complete(results())) == 2
"""
    )
    record = current_loop_record()
    assert record is not None
    before = dict(record)
    record.clear()
    try:
        result = explore(source, "--handfast-schedules=30", "-Wignore")
        assert type(record["_loop"]) is asyncio.SelectorEventLoop  # the normal run's
        record["_loop"].close()
    finally:
        record.clear()
        record.update(before)
    result.assert_outcomes(passed=1)
    assert "1 sampled" in summary(result)[0]


def test_subtests_belong_to_the_normal_run(explore: Explore) -> None:
    """They are reported once, and one that fails under a schedule only fails that schedule."""
    source = (
        UNORDERED
        + """
import unittest
@pytest.mark.asyncio
async def test_passes(subtests):
    for number in await results():
        with subtests.test(number):
            assert number
class TestIt(unittest.IsolatedAsyncioTestCase):
    async def test_fails(self):
        seen = await results()
        with self.subTest("order"):
            assert seen == [1, 2]
"""
    )
    result = explore(source, "-x", "--handfast-schedules=30")
    assert sum("FAILED" in line for line in result.outlines) == 1
    result.stdout.fnmatch_lines(
        ["HF441  the test fails under this schedule", "confirmed*", "findings: 1 HF441"]
    )
    result.assert_outcomes(passed=2, failed=1)
