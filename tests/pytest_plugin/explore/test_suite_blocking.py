"""`--handfast-explore` on suites that forbid blocking calls inside an event loop, as blockbuster does."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.explore.inner_suites import UNORDERED, Explore, explorer, summary

pytest_plugins = ["pytester"]
explore = pytest.fixture(explorer)

# What blockbuster does to the functions of the os module and to locks, by an audit of calls: a
# function in C is reported if an event loop runs in this thread.
DETECTOR = """
import os, sys
FORBIDDEN = {"readlink", "getcwd", "listdir", "lstat", "stat", "scandir"}

@pytest.fixture(autouse=True)
def nothing_blocks():
    blocked = []
    def profile(frame, event, call):
        if event != "c_call" or asyncio._get_running_loop() is None:
            return
        where = getattr(call, "__module__", None)
        if where == "posix" and call.__name__ in FORBIDDEN:
            blocked.append(call.__name__)
        elif call.__name__ == "acquire" and call.__self__.locked():
            code = frame.f_code
            # asyncio and threading have locks of their own, and `take` does not wait.
            if "_explore" in code.co_filename and code.co_name != "take":
                blocked.append(f"acquire in {code.co_name}")
    sys.setprofile(profile)
    yield
    sys.setprofile(None)
    assert not blocked
"""


def test_a_suite_that_forbids_blocking_calls(explore: Explore) -> None:
    from handfast import _code_owner

    _code_owner._packages_folders.cache_clear()
    _code_owner.code_owner.cache_clear()
    _code_owner._maker.cache_clear()
    result = explore(
        UNORDERED
        + DETECTOR
        + """
@pytest.mark.asyncio
async def test_it():
    await results()
""",
        "--handfast-schedules=10",
    )
    result.assert_outcomes(passed=1)
    assert "1 sampled" in summary(result)[0]
