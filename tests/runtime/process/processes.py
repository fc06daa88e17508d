"""Run a test on each kind of event loop, and look afterwards for what it leaked.

Every child inherits a mark in its environment, so that even one that left its group is found.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
import uvloop

from handfast._runtime.process.process import Process

T = TypeVar("T")

LOOPS = ["stock", "uvloop"] + (["eager"] if sys.version_info >= (3, 12) else [])
on_each_loop = pytest.mark.parametrize("kind", LOOPS)

MARK = "HANDFAST_TEST_MARK"
_mark = uuid.uuid4().hex

# A child and a grandchild that wait until they get a signal.
FAMILY = ("bash", "-c", "sleep 1000 & echo ready; wait")


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "uvloop":
        return uvloop.new_event_loop()
    loop = asyncio.new_event_loop()
    if kind == "eager" and sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
    return loop


def drive(kind: str, main: Callable[[], Coroutine[Any, Any, T]], *, quiet: bool = True) -> T:
    """Run `main` on a new loop; fail if it leaves a process, a task, a descriptor or an error."""
    errors: list[dict[str, Any]] = []

    async def checked() -> T:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        # The first child makes the loop open descriptors that it then keeps.
        async with Process("true") as first:
            await first.wait()
        before = descriptors()
        result = await main()
        assert running() == []
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others == set()
        await until(lambda: gc.collect() >= 0 and descriptors() <= before)
        await until(lambda: zombies() == [])
        return result

    os.environ[MARK] = _mark
    try:
        with asyncio.Runner(loop_factory=lambda: new_loop(kind)) as runner:
            result = runner.run(checked())
    finally:
        del os.environ[MARK]
        for left in running():  # of a test that failed
            os.kill(int(left.split()[0]), signal.SIGKILL)
    assert not (quiet and errors), errors
    return result


async def turns(count: int) -> None:
    """Let the loop go round so many times."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


async def until(true: Callable[[], bool]) -> None:
    """Wait for what the system does in its own time; the time-out of the suite bounds it."""
    while not true():
        await asyncio.sleep(0.001)


def cancel_at(task: asyncio.Task[Any], *when: int) -> None:
    """Cancel the task after so many turns of the loop, and again so many later."""
    loop = asyncio.get_running_loop()

    def turn(left: int, later: tuple[int, ...]) -> None:
        if left:
            loop.call_soon(turn, left - 1, later)
            return
        task.cancel()
        if later:
            loop.call_soon(turn, later[0], later[1:])

    turn(when[0], when[1:])


async def outcome(awaitable: Awaitable[object]) -> str:
    """`finished`, `cancelled` or the name of the error."""
    try:
        await awaitable
    except asyncio.CancelledError:
        return "cancelled"
    except Exception as error:
        return type(error).__name__
    return "finished"


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def running() -> list[str]:
    """All processes with our mark that are not zombies, whatever their parent is."""
    mark = f"{MARK}={_mark}".encode()
    found = []
    for pid, state, parent in _processes():
        environ = _read(pid, "environ").split(b"\0")
        # In the middle of exec a process has no environment yet.
        if mark in environ or (environ == [b""] and parent == os.getpid() and state != b"Z"):
            found.append(f"{pid} {_read(pid, 'cmdline')!r}")
    return found


def zombies() -> list[int]:
    """Children of this process that nobody has reaped."""
    return [pid for pid, state, parent in _processes() if parent == os.getpid() and state == b"Z"]


def _processes() -> Iterator[tuple[int, bytes, int]]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if stat := _read(int(pid), "stat"):
            state, parent = stat.rpartition(b")")[2].split()[:2]
            yield int(pid), state, int(parent)


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # it has gone meanwhile
        return b""


async def line_of(process: Process) -> bytes:
    """The next line of its output."""
    async for line in process.stdout.lines():
        return line
    raise AssertionError("it wrote nothing")
