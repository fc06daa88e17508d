"""A thousand cancelled operations leave no growth: tasks, descriptors, children, threads, timers (S3.8)."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import handfast
from tests.support.stepping import run_on

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="descriptors and children are counted in /proc"
)

Operation = Callable[[], Awaitable[object]]


def children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def ours() -> Counter[str]:
    """Live objects of the runtime's own classes, and tasks: also those that are done and kept."""
    gc.collect()
    return Counter(
        type(thing).__qualname__
        for thing in gc.get_objects()
        if str(type(thing).__module__).startswith(("handfast._runtime", "handfast.types"))
        or type(thing).__module__ == "handfast"
        or type(thing) is asyncio.Task
    )


def timers() -> int:
    scheduled: list[asyncio.TimerHandle] = getattr(asyncio.get_running_loop(), "_scheduled", [])
    return sum(not handle.cancelled() for handle in scheduled)


def census() -> dict[str, object]:
    return {
        "objects": ours(),
        "tasks": len(asyncio.all_tasks()),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": children(),
        "threads": threading.active_count(),
        "timers": timers(),
    }


async def settled(expected: dict[str, object] | None = None) -> dict[str, object]:
    """What is there once the other ends of closed sockets have had their turns, too: as expected,
    or else the same twice in a row."""
    before = expected or census()
    for _ in range(20):
        for _ in range(10):
            await asyncio.sleep(0)
        if (after := census()) == before:
            break
        before = expected or after
    return after


async def cancelled_after(turns: int, operation: Operation) -> None:
    """Begin, and cancel after so many turns of the loop; once more a few turns later."""

    async def begin() -> None:
        await operation()

    task = asyncio.create_task(begin())
    for again in (turns, turns % 7):
        for _ in range(again):
            await asyncio.sleep(0)
        task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def no_growth(operation: Operation, count: int, spread: int) -> None:
    for turns in range(spread):  # whatever is made once and kept
        await cancelled_after(turns, operation)
    before = await settled()
    for number in range(count):
        await cancelled_after(number % spread, operation)
    assert await settled(before) == before


# --- the operations ------------------------------------------------------------------------------


@asynccontextmanager
async def resource() -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        child = group.create_task(asyncio.sleep(3600))
        try:
            yield
        finally:
            child.cancel()
            await asyncio.sleep(0)


async def ticks() -> AsyncGenerator[int, None]:
    async with asyncio.timeout(3600):
        try:
            for n in range(100):
                await asyncio.sleep(0)
                yield n
        finally:
            await asyncio.sleep(0)


async def flush() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def held_streamed_and_shielded() -> None:
    async with handfast.Scope("s") as scope:
        await scope.hold(resource())
        try:
            async with handfast.stream(ticks()) as items:
                async for n in items:
                    if n == 5:
                        break
        finally:
            await handfast.shielded(flush())


def test_a_thousand_cancelled_operations_leave_no_growth(kind: str) -> None:
    """S3.8: a resource, a stream and a shielded clean-up in each."""
    run_on(kind, no_growth(held_streamed_and_shielded, count=1000, spread=40))


def test_cancelled_requests_over_a_held_session_leave_no_growth(kind: str) -> None:
    """S3.8: a real aiohttp session and server on loopback."""

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async def main() -> None:
        application = web.Application()
        application.router.add_get("/", slow)
        runner = web.AppRunner(application, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        [(host, port)] = runner.addresses

        async def request() -> None:
            async with handfast.Scope("s") as scope:
                session = await scope.hold(aiohttp.ClientSession())
                async with session.get(f"http://{host}:{port}/") as response:
                    await response.read()

        try:
            await no_growth(request, count=60, spread=30)
        finally:
            await runner.cleanup()

    run_on(kind, main())


def test_cancelled_processes_under_a_scope_leave_no_growth(kind: str) -> None:
    """S3.8: the child is held by the scope, and its output is a stream."""

    async def child() -> None:
        async with handfast.Scope("s") as scope:
            process: Any = await scope.hold(
                handfast.Process("sh", "-c", "echo hi; exec sleep 1000")
            )
            async with handfast.stream(lines_of(process)) as lines:
                async for _ in lines:
                    await asyncio.sleep(3600)

    async def lines_of(process: handfast.Process) -> AsyncGenerator[bytes, None]:
        async for line in process.stdout.lines():
            yield line

    run_on(kind, no_growth(child, count=24, spread=12))
