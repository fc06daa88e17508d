"""More tasks that look dead and are not: something will cancel them, or they wait on purpose."""

from __future__ import annotations

import asyncio
import weakref
from asyncio import Task
from collections.abc import Iterable
from typing import Any

from tests.watch.never_wakes.tasks import World, alive, dead, get, wait


def cancel(task: Task[Any] | None) -> None:
    if task is not None:
        task.cancel()


@alive
async def timers_with_weak_references(world: World) -> list[Task[Any]]:
    class Watchdog:
        def __init__(self, task: Task[Any]) -> None:
            self.tasks = {task}

        def bite(self) -> None:
            for task in self.tasks:
                task.cancel()

    def cancel_behind(reference: weakref.ref[Task[Any]]) -> None:
        cancel(reference())

    def cancel_all(tasks: Iterable[Task[Any]]) -> None:
        for task in tasks:
            task.cancel()

    started = world.start(*(get(asyncio.Queue()) for _ in range(3)))
    watchdog = Watchdog(started[1])
    world.values.append(watchdog)
    loop = asyncio.get_running_loop()
    loop.call_later(1000, cancel_behind, weakref.ref(started[0]))
    loop.call_later(1000, weakref.WeakMethod(watchdog.bite))
    loop.call_later(1000, cancel_all, weakref.WeakSet(started[2:]))
    return started


@alive
async def tasks_that_sleep_and_cancel_them(world: World) -> list[Task[Any]]:
    async def watchdog(task: Task[Any]) -> None:
        await asyncio.sleep(1000)
        task.cancel()

    async def several(tasks: list[Task[Any]]) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            for task in tasks:
                task.cancel()

    first, *others = world.start(*(get(asyncio.Queue()) for _ in range(3)))
    world.start(watchdog(first), several(others))
    return [first, *others]


@dead
async def those_that_would_cancel_each_other(world: World) -> list[Task[Any]]:
    async def parent() -> None:
        task = world.start(get(asyncio.Queue()))[0]
        inner.append(task)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()

    inner: list[Task[Any]] = []
    started = world.start(parent())
    await asyncio.sleep(0.001)
    return [*started, *inner]


@dead
async def a_live_task_that_only_knows_them(world: World) -> list[Task[Any]]:
    async def main(tasks: list[Task[Any]]) -> None:
        await asyncio.sleep(1000)
        world.tasks.update(tasks)

    started = world.start(get(asyncio.Queue()), wait(asyncio.Event()))
    world.start(main(started))
    return started


@alive
async def parked_in_other_words(world: World) -> list[Task[Any]]:
    async def without_a_timeout() -> None:
        await asyncio.wait_for(asyncio.Event().wait(), None)

    async def in_a_loop() -> None:
        stop = asyncio.Event()
        while not stop.is_set():
            await stop.wait()

    async def by_default(stop: asyncio.Event | None = None) -> None:
        stop = stop or asyncio.Event()
        await stop.wait()

    async def by_default_too(stop: asyncio.Event | None = None) -> None:
        if stop is None:
            stop = asyncio.Event()
        await stop.wait()

    return world.start(without_a_timeout(), in_a_loop(), by_default(), by_default_too())


@alive
async def parked_with_anyio(world: World) -> list[Task[Any]]:
    try:
        import anyio
    except ImportError:
        return []

    async def forever() -> None:
        await anyio.Event().wait()

    return world.start(forever())
