"""Schedules are kept between two runs of `pytest --handfast-explore`."""

from __future__ import annotations

import json

import pytest

from tests.pytest_plugin.explore.inner_suites import Explore, explorer

pytest_plugins = ["pytester"]

MANY_STEPS = "\n".join(["    await asyncio.sleep(0)"] * 20)
# The lock is lost only if the task is cancelled at one of its last steps before the end.
LATE = f"""
async def work(lock):
{MANY_STEPS}
    await lock.acquire()
    await asyncio.sleep(0)
    lock.release()
    await asyncio.Event().wait()

@pytest.mark.asyncio
async def test_late():
    lock = asyncio.Lock()
    task = asyncio.create_task(work(lock))
    for _ in range(30):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
"""


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


def found(explore: Explore, *arguments: str) -> bool:
    result = explore(
        LATE,
        "--handfast-explore-cancel",
        "--handfast-schedules=16",
        "--handfast-seconds=60",
        *arguments,
    )
    return "failed" in result.parseoutcomes()


def test_the_next_run_continues(explore: Explore, pytester: pytest.Pytester) -> None:
    assert not found(explore)
    (kept,) = (pytester.path / ".handfast" / "corpus").iterdir()
    searches, (position, _, _) = json.loads(kept.read_text())[1:3]
    assert searches == 1
    assert position > 5
    assert found(explore)
    assert found(explore)  # and what was found is tried first


def test_without_the_corpus_each_run_is_the_same(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    for _ in range(2):
        assert not found(explore, "--handfast-explore-no-corpus")
    assert not (pytester.path / ".handfast").exists()
