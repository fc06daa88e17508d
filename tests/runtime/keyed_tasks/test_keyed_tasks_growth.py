"""Nothing is left of a keyed task: no entry, no reference. S0.6."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

from handfast import KeyedTasks, Scope
from tests.runtime.keyed_tasks.random_sequences import remains
from tests.runtime.scope.workshop import turns
from tests.support.stepping import run_on


class Payload:
    """Something that a worker holds on to."""


async def hold(payload: Payload) -> Payload:
    await asyncio.get_running_loop().create_future()
    return payload


async def show(payload: Payload) -> None:
    await asyncio.sleep(0)


class Traces:
    """Weak references to tasks, to what they run and to what that holds."""

    def __init__(self) -> None:
        self._references: list[weakref.ref[Any]] = []

    def note(self, *things: object) -> None:
        self._references.extend(map(weakref.ref, things))

    def left(self) -> int:
        gc.collect()
        return sum(reference() is not None for reference in self._references)


def test_ten_thousand_replacements_on_one_key_leave_nothing(kind: str) -> None:
    """S0.6: every other task comes to its first step."""
    traces = Traces()

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        for number in range(10_000):
            payload = Payload()
            task = await keyed.replace("user", hold, payload)
            if number % 2:
                await asyncio.sleep(0)
            traces.note(task, payload)
        assert len(keyed) == len(scope) == 1
        assert await keyed.cancel("user")
        del task, payload
        await turns(1)
        assert remains(keyed) == []
        assert traces.left() == 0
        await scope.close()

    run_on(kind, main())


def test_ten_thousand_that_replace_at_once_leave_nothing() -> None:
    """S0.6: all of them wait for the same key."""
    traces = Traces()

    async def replace(keyed: KeyedTasks) -> None:
        payload = Payload()
        traces.note(payload, await keyed.replace("user", hold, payload))

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        callers = [asyncio.create_task(replace(keyed)) for _ in range(10_000)]
        await asyncio.wait(callers)
        assert len(keyed) == len(scope) == 1
        await keyed.close()
        del callers
        assert remains(keyed) == []
        assert traces.left() == 0
        await scope.close()

    run_on("stock", main())


def test_one_task_on_each_of_a_hundred_thousand_keys_leaves_nothing() -> None:
    """S0.6: all of them alive at once; nine of ten end by themselves, the others with the close."""
    traces = Traces()

    async def main() -> None:
        scope = Scope("bot")
        keyed = KeyedTasks(scope)
        for key in range(100_000):
            payload = Payload()
            task = keyed.start(key, show if key % 10 else hold, payload)
            traces.note(task, payload)
        assert len(keyed) == 100_000
        await turns(3)
        assert len(keyed) == 10_000
        report = await keyed.close()
        assert len(report.cancelled) == 10_000
        del task, payload, report
        assert remains(keyed) == []
        assert traces.left() == 0
        await scope.close()

    run_on("stock", main())


def test_ten_thousand_that_share_one_key_leave_nothing() -> None:
    """S0.6: one task, and all of them get its result."""
    traces = Traces()

    async def fetch() -> Payload:
        await asyncio.sleep(0)
        traces.note(payload := Payload())
        return payload

    async def main() -> None:
        scope = Scope("cache")
        keyed = KeyedTasks(scope)
        results = await asyncio.gather(*(keyed.share("page", fetch) for _ in range(10_000)))
        assert len(set(results)) == 1
        del results
        await turns(1)  # until the loop has let go of the gather()
        assert remains(keyed) == []
        assert traces.left() == 0
        await scope.close()

    run_on("stock", main())


def test_keyed_tasks_can_be_weakly_referenced() -> None:
    """They are collected with their last reference."""

    async def main() -> None:
        async with Scope("bot") as scope:
            keyed = KeyedTasks(scope)
            await keyed.share("a", asyncio.sleep, 0)
            alive = weakref.ref(keyed)
            del keyed
            gc.collect()
            assert alive() is None

    asyncio.run(main())
