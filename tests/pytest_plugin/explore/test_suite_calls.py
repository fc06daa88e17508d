"""`--handfast-explore-cancel`: a task that calls a library may be cancelled inside the call."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.explore.inner_suites import Explore, explorer, summary

pytest_plugins = ["pytester"]

# A pool that forgets its slot if a cancel comes at a bad moment, and one that does not.
LIBRARY = """
import asyncio

class Pool:
    def __init__(self):
        self.free = 1
        self.waiters = []
        self.lock = asyncio.Lock()

    async def send(self, guarded=False):
        while not self.free:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            await waiter
        self.free -= 1
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            if guarded:
                self.give_back()
            raise
        self.give_back()

    def give_back(self):
        self.free += 1
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def locked(self):
        await self.lock.acquire()
        await asyncio.sleep(0.01)
        self.lock.release()

    async def meet(self, number):
        self.waiters.append(waiter := asyncio.get_running_loop().create_future())
        if len(self.waiters) == number:
            for each in self.waiters:
                each.set_result(None)
        await waiter

    async def careless(self):
        try:
            await asyncio.sleep(0.01)
            connection = "open"
            await asyncio.sleep(0.01)
        finally:
            print(connection)

    async def __aenter__(self):
        await self.lock.acquire()

    async def __aexit__(self, *_):
        self.lock.release()

    async def step(self):
        self.lock.release()
        await asyncio.sleep(0.01)  # a cancel here leaves it to others
        await self.lock.acquire()

class Shared:
    load = None

    async def get(self):
        if self.load is None:
            self.load = asyncio.ensure_future(asyncio.sleep(0.01, "value"))
        return await self.load
"""
HEAD = """
from library import Pool, Shared
"""


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    pytester.makepyfile(library=LIBRARY)
    return explorer(pytester)


def _body(body: str) -> str:
    return HEAD + "@pytest.mark.asyncio\nasync def test_it():\n    pool = Pool()\n    " + body


def test_a_slot_that_a_cancelled_call_keeps_hangs_the_others(explore: Explore) -> None:
    body = _body("await asyncio.gather(pool.send(), pool.send(), pool.send())")
    quiet = explore(body)
    quiet.assert_outcomes(passed=1)
    result = explore(body, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["HF431  deadlock: * for something that cannot happen", "confirmed on asyncio's own loop*"]
    )


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.gather(*(pool.send(guarded=True) for _ in range(3)))",
        # The others wait for the cancelled one with good reason.
        "await asyncio.gather(*(pool.meet(3) for _ in range(3)))",
        # The test itself forgets the lock, and not the library.
        """
    async def work():
        await pool.lock.acquire()
        await pool.send(guarded=True)
        pool.lock.release()
    await asyncio.gather(work(), work())
""",
        # The test uses the result of the cancelled task.
        """
    async def work():
        await pool.send(guarded=True)
        return {"key": 1}
    found = await asyncio.gather(work(), work())
    assert [each["key"] for each in found] == [1, 1]
""",
        # The others are cancelled by the time limit, while they wait for the cancelled one.
        """
    both = asyncio.Barrier(2)
    async def work():
        await pool.send(guarded=True)
        await both.wait()
        await asyncio.create_task(pool.send(guarded=True))
    await asyncio.wait_for(asyncio.gather(work(), work()), 5)
""",
        # No call of a library.
        "await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))",
    ],
)
def test_a_right_library_is_no_finding(explore: Explore, body: str) -> None:
    result = explore(_body(body), "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


def test_a_task_that_a_thread_starts_is_not_the_tests_own(explore: Explore) -> None:
    """anyio reports its cancel as an error to the thread, and the test waits for that thread."""
    body = """
import anyio, anyio.from_thread, anyio.to_thread

async def main():
    await anyio.to_thread.run_sync(anyio.from_thread.run, Pool().send, True)

def test_it():
    anyio.run(main)
"""
    result = explore(HEAD + body, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


@pytest.mark.parametrize(
    "body", ["await pool.locked()", "await asyncio.gather(pool.locked(), pool.locked())"]
)
def test_a_lock_that_a_cancelled_call_keeps(explore: Explore, body: str) -> None:
    result = explore(_body(body), "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF531  Pool.locked was cancelled and did not release its lock",
            "*acquired at library.py:* in Pool.locked",
            "confirmed on asyncio's own loop*",
        ]
    )


@pytest.mark.parametrize("body", ["await pool.careless()", "await asyncio.gather(pool.careless())"])
def test_a_call_that_fails_in_its_clean_up(explore: Explore, body: str) -> None:
    result = explore(_body(body), "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF441  Pool.careless was cancelled and fails in its clean-up*",
            "*library.py:* in Pool.careless",
            "confirmed on asyncio's own loop*",
        ]
    )


def test_a_call_that_breaks_what_its_caller_does_next(explore: Explore) -> None:
    """The error is in what the library does for the test after the call."""
    body = """
    async def work():
        async with asyncio.TaskGroup(), pool:
            await pool.step()
    await work()
"""
    result = explore(_body(body), "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF441  the test was cancelled and fails after that",
            "*RuntimeError: Lock is not acquired.*",
            "confirmed on asyncio's own loop*",
        ]
    )


def test_a_cancel_of_one_caller_reaches_another(explore: Explore) -> None:
    body = "shared = Shared()\n    await asyncio.gather(shared.get(), shared.get())"
    result = explore(_body(body), "--handfast-explore-cancel")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "HF441  Shared.get is cancelled with another task*",
            "*library.py:* in Shared.get",
            "confirmed on asyncio's own loop*",
        ]
    )


def test_what_a_cancelled_run_leaves_in_a_global_is_no_finding(explore: Explore) -> None:
    """The cancelled test does not clean up, and no schedule passes after it."""
    body = """
busy = []
pool = Pool()
@pytest.mark.asyncio
async def test_it():
    assert not busy
    busy.append(1)
    await asyncio.gather(pool.send(guarded=True), pool.send(guarded=True))
    await pool.send(guarded=True)
    busy.clear()
"""
    result = explore(HEAD + body, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[-1] == "findings: none"


def test_a_set_up_that_is_cancelled_can_be_repeated(
    pytester: pytest.Pytester, explore: Explore
) -> None:
    """The fixture fails with a CancelledError, which pytest does not expect of one."""
    source = """
import pytest_asyncio
from library import Pool
@pytest_asyncio.fixture
async def pool():
    with open("begun", "a") as file:
        file.write("x")
    pool = Pool()
    await pool.send(guarded=True)
    return pool
@pytest.mark.asyncio
async def test_send(pool):
    await pool.send(guarded=True)
"""
    result = explore(source, "--handfast-explore-cancel")
    result.assert_outcomes(passed=1)
    assert summary(result)[1:] == ["findings: none"]
    schedules = int(summary(result)[0].split()[3])
    # The normal run, and three more in the plain order before the first schedule.
    assert len((pytester.path / "begun").read_text()) >= schedules + 4
