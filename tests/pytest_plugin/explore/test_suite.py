"""`pytest --handfast-explore`: what it explores, what fails, and what the summary says."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.explore.inner_suites import STRICT, UNORDERED, Explore, explorer

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


RUNNERS = {
    "pytest-asyncio, strict": (STRICT, ()),
    "pytest-asyncio, auto": (
        UNORDERED + "async def test_order():\n    assert await results() == [1, 2]\n",
        ("--asyncio-mode=auto",),
    ),
    "pytest-asyncio, loop of the session": (
        UNORDERED
        + """
pytestmark = pytest.mark.asyncio(loop_scope="session")
async def test_before():
    await asyncio.sleep(0)
async def test_order():
    assert await results() == [1, 2]
""",
        (),
    ),
    "anyio": (
        UNORDERED
        + """
@pytest.fixture
def anyio_backend():
    return "asyncio"
@pytest.mark.anyio
async def test_order():
    assert await results() == [1, 2]
""",
        (),
    ),
    "IsolatedAsyncioTestCase": (
        "import unittest\n"
        + UNORDERED
        + """
class TestOrder(unittest.IsolatedAsyncioTestCase):
    async def test_order(self):
        self.assertEqual(await results(), [1, 2])
""",
        (),
    ),
    "asyncio.run in a plain test": (
        UNORDERED + "def test_order():\n    assert asyncio.run(results()) == [1, 2]\n",
        (),
    ),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_race_is_found_confirmed_and_fails_its_test(explore: Explore, runner: str) -> None:
    source, arguments = RUNNERS[runner]
    result = explore(source, *arguments)
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            "HF441  the test fails under this schedule",
            "what differs from a normal run:",
            "replay: pytest test_it.py::*test_order --handfast-replay=hf1.*",
            "confirmed on asyncio's own loop (in * run*)",
            "findings: 1 HF441",
        ]
    )
    assert result.ret == 1


def test_nothing_is_printed_or_imported_without_the_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
import sys
def test_it():
    assert not [each for each in sys.modules if "_explore." in each]
""")
    result = pytester.runpytest_subprocess("-p", "no:langsmith_plugin")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*handfast: expl*")
