"""`--handfast-explore-cancel` and a lock that the body of a test takes itself."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.explore.inner_suites import STRICT, Explore, explorer, summary

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


def test_a_test_that_cancels_its_own_task_may_keep_its_lock(explore: Explore) -> None:
    result = explore(
        """
import anyio
@pytest.fixture
def anyio_backend():
    return "asyncio"
@pytest.mark.anyio
async def test_it():
    async def wait(*, task_status):
        task_status.started()
        async with lock:
            pass
    lock = anyio.Lock()
    async with anyio.create_task_group() as group:
        await lock.acquire()
        await group.start(wait)
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            lock.release()
""",
        "--handfast-explore-cancel",
    )
    assert summary(result)[-1] == "findings: none"


def test_a_test_that_exits_under_a_schedule_has_failed(explore: Explore) -> None:
    """As in a normal run of pytest: the others go on."""
    source = STRICT.replace(
        "assert await results() == [1, 2]", "await results() == [1, 2] or exit(3)"
    )
    result = explore(source + STRICT.replace("test_order", "test_other"), "--handfast-schedules=9")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["  SystemExit: 3", "findings: 2 HF441"])
