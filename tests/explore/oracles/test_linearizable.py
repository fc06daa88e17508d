"""`linearizable` in explored programs: racy objects are found, right ones pass in every schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from handfast.explore import explore, linearizable, serializable, victim
from tests.explore.oracles.models import (
    CacheModel,
    LockModel,
    QueueModel,
    RacyCache,
    RacyLock,
    RacyQueue,
    RightCache,
    RightQueue,
    RightStore,
    StaleStore,
    StoreModel,
)

Program = Callable[[], Coroutine[Any, Any, None]]


def cache(make: Callable[[], Any]) -> Program:
    async def program() -> None:
        with linearizable(CacheModel) as history:
            cache = history.watch(make())

            async def ask(delay: float) -> None:
                await asyncio.sleep(delay)  # in the plain order one answer comes before the next
                await cache.get("a")

            await asyncio.gather(ask(0.01), ask(0.03), cache.get("b"))

    return program


def queue(make: Callable[[], Any]) -> Program:
    async def program() -> None:
        with linearizable(QueueModel) as history:
            queue = history.watch(make())
            await queue.put(1)
            await queue.put(2)
            await asyncio.gather(queue.get(), queue.get())

    return program


def lock(make: Callable[[], Any]) -> Program:
    async def program() -> None:
        history = linearizable(LockModel)
        lock = history.watch(make())

        async def work() -> None:
            await lock.acquire()
            await asyncio.sleep(0.01)
            lock.release()

        await asyncio.gather(work(), work())
        history.check()

    return program


def store(make: Callable[[], Any]) -> Program:
    async def program() -> None:
        history = linearizable(StoreModel)
        store = history.watch(make())
        await store.write("x", 0)

        async def write() -> None:
            await store.write("x", 1)
            assert await store.read("x") >= 0

        await asyncio.gather(write(), store.read("x"))
        history.check()

    return program


@pytest.mark.parametrize(
    "program",
    [cache(RacyCache), queue(RacyQueue), lock(RacyLock), store(StaleStore)],
    ids=["cache", "queue", "lock", "store"],
)
def test_a_racy_object_is_found(program: Program) -> None:
    result = explore(program, schedules=50)
    assert result.counterexample is not None
    assert result.counterexample.verdict.error_type == "InconsistentHistory"
    assert result.schedules <= 10
    assert "not linearizable" in result.counterexample.verdict.message
    # The line of the program, not one of the recorder.
    assert Path(__file__).name in result.counterexample.verdict.where[0]
    assert result.counterexample.replay().same_bug(result.counterexample.verdict)


@pytest.mark.parametrize(
    "program",
    [cache(RightCache), queue(RightQueue), lock(asyncio.Lock), store(RightStore)],
    ids=["cache", "queue", "lock", "store"],
)
def test_a_right_object_passes_in_all_schedules(program: Program) -> None:
    result = explore(program, schedules=2_000, stall=0.005)
    assert (result.counterexample, result.complete) == (None, True)


def test_a_block_of_a_lock_is_acquire_and_release() -> None:
    async def program() -> None:
        with linearizable(LockModel) as history:
            lock = history.watch(asyncio.Lock())

            async def work() -> None:
                async with lock:
                    await asyncio.sleep(0)

            await asyncio.gather(work(), work())
            assert not lock.locked()
            names = sorted(each.name for each in history._operations)
            assert names == ["acquire", "acquire", "release", "release"]

    assert explore(program).counterexample is None


def bank(transfers: Callable[[dict[str, int], asyncio.Lock], Any]) -> Program:
    class Bank:
        def __init__(self) -> None:
            self.money = {"a": 100, "b": 0}

        def transfer(self, amount: int) -> bool:
            if self.money["a"] < amount:
                return False
            self.money["a"] -= amount
            self.money["b"] += amount
            return True

    async def program() -> None:
        money = {"a": 100, "b": 0}
        lock = asyncio.Lock()
        history = serializable(Bank)
        transfer = history.watch(transfers(money, lock))
        await asyncio.gather(transfer(70), transfer(60))
        history.check(final=lambda model: model.money == money)

    return program


def test_transfers_that_are_not_serializable_are_found_and_those_under_a_lock_pass() -> None:
    def racy(money: dict[str, int], lock: asyncio.Lock) -> Any:
        async def transfer(amount: int) -> bool:
            if money["a"] < amount:
                return False
            await asyncio.sleep(0.01)
            money["a"] -= amount
            money["b"] += amount
            return True

        return transfer

    def right(money: dict[str, int], lock: asyncio.Lock) -> Any:
        unlocked = racy(money, lock)

        async def transfer(amount: int) -> bool:
            async with lock:
                return bool(await unlocked(amount))

        return transfer

    found = explore(bank(racy)).counterexample
    assert found is not None
    assert "not serializable" in found.verdict.message
    assert explore(bank(right)).complete


def test_a_cancelled_operation_may_or_may_not_have_taken_effect() -> None:
    outcomes = set()

    async def program() -> None:
        with linearizable(QueueModel) as history:
            queue = history.watch(SlowQueue())
            put = await victim(queue.put(1))
            await queue.put(2)
            outcomes.add((put.cancelled, await queue.get()))

    result = explore(program, cancel=True)
    assert (result.counterexample, result.complete) == (None, True)
    assert outcomes == {(False, 1), (True, 1), (True, 2)}


class SlowQueue(RightQueue):
    async def put(self, item: object) -> None:
        await asyncio.sleep(0)
        await super().put(item)
        await asyncio.sleep(0)
