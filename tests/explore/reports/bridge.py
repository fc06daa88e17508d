"""A reactive pipeline hands messages over to graphs on an event loop, from whatever thread emits.
The bridge is cleaned up while a message is still on its way."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable

import holdfast

Waiting = concurrent.futures.Future[int] | asyncio.Future[int]


async def graph(message: int) -> int:
    """Stands for the run of a graph."""
    await asyncio.sleep(0.02)
    return message


class AsReported:
    """Tasks in a plain set, started from the emitting thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.active: set[asyncio.Future[int]] = set()

    def submit(self, message: int) -> Waiting:
        task = asyncio.ensure_future(graph(message), loop=self.loop)
        self.active.add(task)
        task.add_done_callback(self.active.discard)
        return task

    async def cleanup(self) -> None:
        tasks = list(self.active)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        late = self.active - set(tasks)
        for task in late:
            task.cancel()
        self.active.clear()


class AsTheReportWouldFixIt(AsReported):
    """The same with a lock around the set."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def submit(self, message: int) -> Waiting:
        task = asyncio.ensure_future(graph(message), loop=self.loop)
        with self.lock:
            self.active.add(task)
        task.add_done_callback(self.remove)
        return task

    def remove(self, task: asyncio.Future[int]) -> None:
        with self.lock:
            self.active.discard(task)

    async def cleanup(self) -> None:
        with self.lock:
            tasks = list(self.active)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with self.lock:
            self.active.clear()


class AsItShouldBe:
    """A scope: it takes work from any thread until closing begins, and answers everybody."""

    def __init__(self) -> None:
        self.scope = holdfast.Scope("bridge", on_failure="report")

    def submit(self, message: int) -> Waiting:
        return self.scope.submit(graph, message)

    async def cleanup(self) -> None:
        await self.scope.close(grace=0.0)


Bridge = AsReported | AsItShouldBe


async def emitted_while_closing(make: Callable[[], Bridge]) -> None:
    """Two messages come from threads; the bridge is cleaned up meanwhile. Nobody is left waiting
    and no run is left behind."""
    bridge = make()

    def emit(message: int) -> None:
        with contextlib.suppress(holdfast.ScopeClosed):
            bridge.submit(message)

    async with asyncio.TaskGroup() as emitting:
        for message in range(2):
            emitting.create_task(asyncio.to_thread(emit, message))
        try:
            await asyncio.sleep(0.01)
        finally:
            await bridge.cleanup()


async def as_reported() -> None:
    await emitted_while_closing(AsReported)


async def as_the_report_would_fix_it() -> None:
    await emitted_while_closing(AsTheReportWouldFixIt)


async def as_it_should_be() -> None:
    await emitted_while_closing(AsItShouldBe)
