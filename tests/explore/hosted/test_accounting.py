"""Who holds which lock: what is recorded, and what counts as lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from handfast._explore.hosted.accounting import Accounts

pytestmark = pytest.mark.asyncio

LINE = "test_accounting.py:"


async def as_task(function: Callable[[], Awaitable[object]], *, cancel: bool = False) -> None:
    """Run it in a task of its own, which is kept by the accounts if it holds something."""

    async def body() -> None:
        await function()

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    if cancel:
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def keeps(lock: asyncio.Lock, ending: Callable[[], Awaitable[object]]) -> None:
    await lock.acquire()
    await ending()


async def fails() -> None:
    raise ValueError


async def returns() -> None:
    """Ends without an error."""


async def waits() -> None:
    await asyncio.sleep(10)


@pytest.mark.parametrize(("ending", "how"), [(fails, "failed"), (waits, "was cancelled")])
async def test_a_task_that_ends_badly_and_keeps_its_lock(
    ending: Callable[[], Awaitable[object]], how: str
) -> None:
    accounts = Accounts()
    lock = asyncio.Lock()
    with accounts.installed():
        await as_task(lambda: keeps(lock, ending), cancel=ending is waits)
    lost = accounts.lost(set())
    assert lost is not None
    assert lost.code == "HF531"
    assert f"{how} and did not release its lock" in lost.message
    assert LINE in lost.where[0]
    assert accounts.lost(accounts.unpaired()) is None


async def test_a_task_that_returns_may_leave_its_lock_to_others() -> None:
    accounts = Accounts()
    lock = asyncio.Lock()
    with accounts.installed():
        await as_task(lambda: keeps(lock, returns))
    assert accounts.lost(set()) is None
    assert len(accounts.unpaired()) == 1


async def test_a_lock_that_its_task_still_holds_is_not_lost() -> None:
    accounts = Accounts()
    lock = asyncio.Lock()
    with accounts.installed():
        await lock.acquire()
    assert accounts.lost(set()) is None
    lock.release()


async def test_a_lock_that_another_task_releases_is_unpaired() -> None:
    accounts = Accounts()
    lock = asyncio.Lock()
    with accounts.installed():
        await as_task(lambda: keeps(lock, returns))
        lock.release()
    assert len(accounts.unpaired()) == 1


async def test_each_release_ends_the_hold_of_its_own_task() -> None:
    accounts = Accounts()
    semaphore = asyncio.Semaphore(3)

    async def uses() -> None:
        async with semaphore:
            await asyncio.sleep(0)

    with accounts.installed():
        await asyncio.gather(uses(), uses(), uses())
    assert accounts.unpaired() == set()


async def test_a_release_without_an_acquire_is_a_signal() -> None:
    accounts = Accounts()
    semaphore = asyncio.Semaphore(0)
    with accounts.installed():
        semaphore.release()
    assert accounts.unpaired() == set()


async def test_an_acquire_that_fails_holds_nothing() -> None:
    accounts = Accounts()
    lock = asyncio.Lock()
    await lock.acquire()
    with accounts.installed(), pytest.raises(TimeoutError):
        await asyncio.wait_for(lock.acquire(), 0)
    assert accounts.unpaired() == set()


async def test_what_is_acquired_during_shutdown_does_not_count() -> None:
    accounts = Accounts(lambda: True)
    lock = asyncio.Lock()
    with accounts.installed():
        await lock.acquire()
        lock.release()
        await as_task(lambda: keeps(lock, fails))
    assert accounts.lost(set()) is None
    assert accounts.unpaired() == set()


async def test_both_forms_of_an_acquire_of_anyio_are_recorded_once() -> None:
    anyio = pytest.importorskip("anyio")
    accounts = Accounts()
    limiter, lock = anyio.CapacityLimiter(1), anyio.Lock()
    with accounts.installed():
        limiter.acquire_nowait()
        limiter.release()
        await limiter.acquire_on_behalf_of("job")
        limiter.release_on_behalf_of("job")
        lock.acquire_nowait()
        lock.release()
        await lock.acquire()
        lock.release()
    assert accounts.unpaired() == set()


async def test_the_patches_are_undone() -> None:
    before = dict(vars(asyncio.Lock)), dict(vars(asyncio.Semaphore))
    with Accounts().installed():
        assert asyncio.Lock.acquire.__qualname__ == "Lock.acquire"
        assert vars(asyncio.Lock)["acquire"] is not before[0].get("acquire")
    assert (dict(vars(asyncio.Lock)), dict(vars(asyncio.Semaphore))) == before
