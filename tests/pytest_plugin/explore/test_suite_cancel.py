"""`--handfast-explore-cancel`: tasks that the test cancels are cancelled at other points, too."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.explore.inner_suites import Explore, explorer, summary

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


POOL = """
class Pool:
    def __init__(self):
        self.{attribute} = {constructor}
        self.sent = 0

    async def send(self):
        await self.{attribute}.acquire()
        await asyncio.sleep(0.01)  # a cancel here keeps it for ever
        try:
            self.sent += 1
            await asyncio.sleep(0.01)
        finally:
            self.{attribute}.release()
"""
# Cancelled where it is safe; the test never asserts on the pool.
CANCELS = """
@pytest.mark.asyncio
async def test_send_can_be_cancelled():
    pool = Pool()
    await pool.send()
    task = asyncio.create_task(pool.send())
    await asyncio.sleep(0.015)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
"""


@pytest.mark.parametrize(
    ("constructor", "kind"),
    [
        ("asyncio.Semaphore(2)", "semaphore"),
        ("asyncio.BoundedSemaphore(2)", "semaphore"),
        ("asyncio.Lock()", "lock"),
        ("asyncio.Condition()", "lock"),
        ("__import__('anyio').Lock()", "lock"),
        ("__import__('anyio').Semaphore(2)", "semaphore"),
        ("__import__('anyio').CapacityLimiter(2)", "capacity limiter"),
    ],
)
def test_a_lock_that_a_cancelled_task_keeps(explore: Explore, constructor: str, kind: str) -> None:
    source = POOL.format(attribute="free", constructor=constructor) + CANCELS
    quiet = explore(source)
    quiet.assert_outcomes(passed=1)
    assert any("not checked: other points of cancellation" in line for line in summary(quiet))
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            f"HF531  *Pool.send was cancelled and did not release its {kind}",
            "*acquired at test_it.py:*in *send",
            "confirmed on asyncio's own loop*",
            "findings: 1 HF531",
        ]
    )


def test_a_lock_that_is_always_released_is_no_finding(explore: Explore) -> None:
    source = POOL.format(attribute="free", constructor="asyncio.Lock()").replace(
        "await asyncio.sleep(0.01)  # a cancel here keeps it for ever", "pass"
    )
    source += CANCELS.replace("0.015", "0.005")
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


def test_a_semaphore_that_another_task_releases_is_a_signal(explore: Explore) -> None:
    source = """
@pytest.mark.asyncio
async def test_signal():
    ready = asyncio.Semaphore(0)
    async def waiter():
        await ready.acquire()
        await asyncio.sleep(1)
    task = asyncio.create_task(waiter())
    await asyncio.sleep(0.1)
    ready.release()
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
"""
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


def test_a_cancel_that_is_swallowed_at_another_point(explore: Explore) -> None:
    source = """
async def serve():
    try:
        await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        await asyncio.sleep(0.001)  # says goodbye, and forgets the cancel
        return
    await asyncio.sleep(1)

@pytest.mark.asyncio
async def test_stop():
    task = asyncio.create_task(serve())
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
"""
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["HF501  serve was cancelled and returned normally", "confirmed on asyncio's own loop*"]
    )


def test_a_mistake_in_the_clean_up_of_a_cancelled_task(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        library="""
import asyncio
async def serve():
    try:
        await asyncio.sleep(0.01)
        connection = "open"
        await asyncio.sleep(1)
    finally:
        print(connection)
"""
    )
    source = """
from library import serve
@pytest.mark.asyncio
async def test_stop():
    task = asyncio.create_task(serve())
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
"""
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF441  serve was cancelled and fails in its clean-up",
            "*UnboundLocalError*",
            "*library.py:8 in serve",
            "confirmed on asyncio's own loop*",
        ]
    )


def test_assertions_of_the_test_do_not_count_after_a_cancel(explore: Explore) -> None:
    """The test relies on what the cancelled task has done before."""
    source = """
@pytest.mark.asyncio
async def test_stop():
    seen = []
    async def serve():
        while True:
            seen.append(1)
            await asyncio.sleep(1)
    task = asyncio.create_task(serve())
    await asyncio.sleep(1.5)
    task.cancel()
    await asyncio.wait([task])
    assert len(seen) == 2
"""
    result = explore(source, "--handfast-explore-cancel", "--asyncio-mode=auto")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


def test_tasks_that_the_test_does_not_cancel_are_left_alone(explore: Explore) -> None:
    source = (
        POOL.format(attribute="free", constructor="asyncio.Lock()")
        + """
@pytest.mark.asyncio
async def test_send():
    pool = Pool()
    await asyncio.create_task(pool.send())
"""
    )
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert "1 with one schedule only" in summary(result)[0]
