"""How many schedules the marked tests ran: in the line of a test, in the summary, and meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handfast._explore.campaign import Progress
from handfast.pytest_plugin.explore.marked_tests import ProgressLine
from tests.pytest_plugin.inner_pytest import Run, runner

pytest_plugins = ["pytester"]

SUITE = """
@pytest.mark.explore(schedules=7)
async def test_several():
    await asyncio.gather(*(asyncio.to_thread(int, n) for n in range(3)))

@pytest.mark.explore
@pytest.mark.parametrize("n", range(7))
async def test_one(n):
    await asyncio.sleep(0)

@pytest.mark.explore
async def test_fails():
    assert False

def test_other(): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return runner(pytester)


def test_the_summary_counts_the_schedules_and_names_tests_with_only_one(run: Run) -> None:
    result = run(SUITE, "-v")
    result.assert_outcomes(passed=9, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_several PASSED (7 schedules)*",
            "test_it.py::test_one[[]0[]] PASSED (1 schedule)*",
            "test_it.py::test_fails FAILED *",
            "test_it.py::test_other PASSED *",
            "* handfast: @pytest.mark.explore *",
            "9 tests, 15 schedules",
            *(f"  only 1 schedule: test_it.py::test_one[[]{n}[]]" for n in range(5)),
            "  and 2 more",
            "FAILED test_it.py::test_fails*",
        ]
    )


def test_without_marked_tests_there_is_no_summary(run: Run) -> None:
    assert "explore" not in run("def test_other(): pass").stdout.str()


def line_for(
    *, isatty: bool, plugins: dict[str, Any] | None = None
) -> tuple[ProgressLine, list[str]]:
    written: list[str] = []
    terminal = SimpleNamespace(
        isatty=isatty,
        ensure_newline=lambda: written.append("\n"),
        rewrite=lambda line, erase: written.append(line),
        _tw=SimpleNamespace(fullwidth=30),
    )
    found = {"terminalreporter": terminal, **(plugins or {})}
    manager = SimpleNamespace(get_plugin=found.get)
    item: Any = SimpleNamespace(
        nodeid="test_it.py::test", config=SimpleNamespace(pluginmanager=manager)
    )
    return ProgressLine(item), written


def test_a_long_search_is_shown_on_a_terminal() -> None:
    line, written = line_for(isatty=True)
    line.show(Progress(1, None, 0.5, None))
    line.show(Progress(1000, None, 3.0, None))
    line.show(Progress(1001, None, 3.1, None))  # too soon after the one before
    line.clear()
    assert written == ["\n", "test_it.py::test: 1,000 sched", ""]


def test_nothing_is_shown_elsewhere() -> None:
    line, written = line_for(isatty=False)
    line.show(Progress(1000, None, 3.0, None))
    line.clear()
    assert written == []
