"""Runs pytest inside pytest: a small suite is written, run, and what it printed is looked at."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

# Imported before any inner run: pytester forgets what was imported inside one.
import handfast._explore.render.page
import handfast._explore.render.timeline
import handfast.pytest_plugin.explore.item  # noqa: F401

INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
filterwarnings = error
addopts = -p no:langsmith_plugin
"""

HEAD = """
import asyncio
import pytest
"""

# It goes wrong if the loop is late by 10 ms, and in no other schedule.
RACE = """
async def race():
    seen = []
    async def note(name, delay):
        await asyncio.sleep(delay)
        seen.append(name)
    await asyncio.gather(note("slow", 0.02), note("quick", 0.01))
    return seen
"""

# Plugins that have nothing to do with it, and take long to import. langsmith's, which comes with
# langgraph, also fails under `filterwarnings = error`, and ends the interpreter when it is
# imported again and again: INI blocks it for every inner run.
_NEEDLESS = ("hypothesispytest", "langsmith_plugin", "pytest_cov", "benchmark")
LEAN = tuple(each for name in _NEEDLESS for each in ("-p", f"no:{name}"))

Run = Callable[..., pytest.RunResult]


def runner(pytester: pytest.Pytester) -> Run:
    """Writes a suite and runs it in this process, with the plugins that are installed."""
    pytester.makeini(INI)

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + source)
        return pytester.runpytest_inprocess("--strict-markers", *LEAN, *arguments)

    return run


def replay_arguments(result: pytest.RunResult) -> list[str]:
    """What the line that replays it says after `pytest`."""
    lines = [line for line in result.outlines if line.startswith("replay: pytest ")]
    assert len(lines) == 1
    found = re.fullmatch(r"replay: pytest '?([^']+?)'? (--handfast-replay=\S+)", lines[0])
    assert found is not None
    return [found[1], found[2]]
