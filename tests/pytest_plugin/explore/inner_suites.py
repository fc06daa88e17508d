"""Suites as people write them, without a marker of handfast, and what exploring them prints."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

# Imported before any inner run: pytester forgets what was imported inside one.
import handfast.pytest_plugin.explore.suite.explorer
import handfast.pytest_plugin.explore.suite.replay
import handfast.pytest_plugin.explore.suite.summary  # noqa: F401
from tests.pytest_plugin.inner_pytest import HEAD, LEAN

# Two jobs in threads, which may end in any order. The first one ends first nearly always, but on a
# busy machine the second one may in the normal run: then this is how it fails.
_RACED = re.compile(r"^E .*\[2, 1\] [!=]= \[1, 2\]", re.MULTILINE)
UNORDERED = """
async def results():
    seen = []
    async def one(number):
        seen.append(await asyncio.to_thread(int, number))
    await asyncio.gather(one(1), one(2))
    return seen
"""

STRICT = (
    UNORDERED
    + """
@pytest.mark.asyncio
async def test_order():
    assert await results() == [1, 2]
"""
)

INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
addopts = -p no:langsmith_plugin
"""

Explore = Callable[..., pytest.RunResult]


def explorer(pytester: pytest.Pytester) -> Explore:
    """Writes a suite and explores it in this process; again if its race shows in the normal run."""
    pytester.makeini(INI)

    def run(source: str, *arguments: str, explore: str = "--handfast-explore") -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + source)
        result = pytester.runpytest_inprocess(*LEAN, explore, *arguments)
        for _ in range(10):
            if not _RACED.search(result.stdout.str()):
                break
            result = pytester.runpytest_inprocess(*LEAN, explore, *arguments)
        return result

    return run


def summary(result: pytest.RunResult) -> list[str]:
    """The lines of the summary of explored schedules."""
    lines = result.outlines
    start = next(n for n, line in enumerate(lines) if "handfast: explored schedules" in line)
    rest = lines[start + 1 :]
    return rest[: next(n for n, line in enumerate(rest) if line.startswith("==="))]
