"""A thousand runs in one test: their logs, their output and what they leave behind are one run's."""

from __future__ import annotations

import re

import pytest

from tests.pytest_plugin.inner_pytest import Run, runner

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return runner(pytester)


# Each sleep overtakes those before it unless the loop is late just there, so that many schedules
# are run before one has them all in this order.
NOISY = """
import logging, sys

@pytest.mark.explore(schedules=2000, strategy="random")
async def test_noisy():
    seen = []
    async def sleeps(delay):
        await asyncio.sleep(delay)
        seen.append(delay)
    print("said once")
    print("and complained", file=sys.stderr)
    logging.getLogger("app").warning("logged once")
    logging.getLogger("asyncio").warning("the loop once")
    await asyncio.gather(*(sleeps(delay) for delay in (0.04, 0.03, 0.02, 0.01)))
    assert seen != [0.04, 0.03, 0.02, 0.01]
"""


def test_output_and_logs_of_the_failing_run_are_shown_once(run: Run) -> None:
    result = run(NOISY)
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    found = re.search(r"^found in (\d+) schedules", shown, re.MULTILINE)
    assert found is not None
    assert int(found[1]) > 5
    captured = shown[shown.index("Captured stdout call") :]
    for word in ("said once", "and complained", "logged once", "the loop once"):
        assert captured.count(word) == 1, word


def test_a_test_that_passes_keeps_no_output_of_its_runs(run: Run) -> None:
    source = """
import logging

@pytest.mark.explore(schedules=50)
async def test_quiet():
    print("said often")
    logging.getLogger("app").warning("logged often")
    logging.getLogger("asyncio").warning("the loop often")
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(8)))

@pytest.mark.explore(schedules=50)
async def test_again():
    logging.getLogger("asyncio").warning("the loop often")
    await asyncio.sleep(1)

def test_after():
    logging.getLogger("asyncio").warning("heard again")
"""
    result = run(source, "-rA")
    result.assert_outcomes(passed=3)
    shown = result.stdout.str()
    assert shown.count("said often") == 0
    assert shown.count("logged often") == 1
    assert shown.count("the loop often") == 0
    assert shown.count("heard again") == 1
    run(source, "-s", "-p", "no:logging").assert_outcomes(passed=3)


def test_caplog_and_capsys_begin_empty_in_each_schedule(run: Run) -> None:
    result = run(
        """
import logging

@pytest.mark.explore(schedules=10)
async def test_it(caplog, capsys):
    logging.getLogger("app").warning("one")
    print("two")
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(5)))
    assert [record.message for record in caplog.records] == ["one"]
    assert [record.message for record in caplog.get_records("call")] == ["one"]
    assert capsys.readouterr().out == "two\\n"
"""
    )
    result.assert_outcomes(passed=1)


def test_aborted_runs_do_not_disturb_other_tests(run: Run) -> None:
    """The cancel that comes first leaves a coroutine that is never awaited, and an object whose
    end goes wrong."""
    source = """
import gc

class Loud:
    def __del__(self):
        raise RuntimeError("cannot end")

async def work(loud):
    await asyncio.sleep(1)

async def waits():
    coroutine = work(None)
    loud = Loud()
    loud.cycle = loud
    await asyncio.sleep(1)
    await coroutine

@pytest.mark.explore(cancel="main", schedules=20)
async def test_cut():
    await waits()

def test_after():
    gc.collect()
"""
    for warnings in ("error", "default"):
        result = run(source, "-W", warnings)
        result.assert_outcomes(passed=2)
        assert "warning" not in result.stdout.str()
