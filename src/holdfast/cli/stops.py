"""The stops of the tour: small programs that really run, written as a user would write them.

Each is one function that uses only the public names and returns what it saw; the tour shows its
source beside that text. How they are framed on the screen is `tour`'s business.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import holdfast
from holdfast import explore, leaks

__all__ = ["STOPS", "Stop"]


class Stop(NamedTuple):
    """One stop: what it promises, and the program that keeps it."""

    title: str
    promise: str
    program: Callable[[], Coroutine[Any, Any, str]]


async def failing_child() -> str:
    seen: list[str] = []

    async def parcel() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("parcel cancelled")
            raise

    async def charge() -> None:
        raise ValueError("card declined")

    try:
        async with holdfast.Scope("checkout") as scope:
            scope.spawn(parcel())
            scope.spawn(charge())
    except* ValueError as group:
        seen.append(f"raised {group.exceptions[0]!r}")
    return ", then ".join(seen)


async def straggler() -> str:
    gate = asyncio.Event()

    async def stubborn() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                pass  # the bug: a cancel is swallowed

    scope = holdfast.Scope("bot", on_failure="report")
    scope.spawn(asyncio.sleep(0.05), name="quick")
    scope.spawn(asyncio.sleep(60), name="slow")
    left = scope.spawn(stubborn(), name="stubborn")
    try:
        report = await scope.close(grace=0.2, deadline=0.5)
    finally:
        gate.set()
    await asyncio.wait({left})
    return str(report)


async def replaced() -> str:
    edits: list[int] = []

    async def edit_message(number: int) -> None:
        await asyncio.sleep(0)
        edits.append(number)

    async with holdfast.Scope("chat") as scope:
        slots = holdfast.Slots(scope)
        for number in range(1000):
            await slots.replace("alice", edit_message, number)
    return f"edits by {edits} of 1000, entries left: {len(slots)}"


async def from_thread() -> str:
    async def answer(asked_on: str) -> str:
        here = threading.current_thread().name
        return f"asked on {asked_on}, answered on {here}"

    async with holdfast.Scope("service") as scope:

        def worker() -> str:
            here = threading.current_thread().name
            return scope.submit(answer, here).result(timeout=5)

        return await asyncio.to_thread(worker)


async def grandchild() -> str:
    # The shell ends at once; what it started holds the pipe.
    script = """
        (trap "echo goodbye; exit" TERM; echo here
         while :; do sleep 0.1; done) &
        exit 3
    """
    async with holdfast.Process("sh", "-c", script) as process:
        here = await anext(process.stdout.lines())
        status = await process.wait()
    last = process.stdout.head.removeprefix(here)
    return f"exit {status.code}, grandchild said {here!r}, then {last!r}"


async def cancelled_everywhere() -> str:
    async def program() -> None:
        lock = asyncio.Lock()

        async def work() -> None:
            await lock.acquire()
            await asyncio.sleep(0.01)
            lock.release()  # the bug: a cancel goes past this line

        await explore.victim(work())
        assert not lock.locked()

    found = explore.explore(program, cancel=True).counterexample
    return found.timeline(width=74) if found else "nothing found"


async def left_behind() -> str:
    async def poll() -> None:
        await asyncio.sleep(60)

    try:
        async with leaks.watch():
            asyncio.create_task(poll(), name="poll")  # the bug
    except leaks.LeakError as error:
        return str(error.leaks[0])
    return "nothing"


STOPS = (
    Stop(
        "A child fails",
        "Its siblings are cancelled and joined, and the error comes out of the block.",
        failing_child,
    ),
    Stop(
        "An owner closes",
        "Close returns within its deadline and names who is left, and where it stands.",
        straggler,
    ),
    Stop(
        "One task per key",
        "A replaced task has no further effect, and the last one leaves no entry.",
        replaced,
    ),
    Stop(
        "Work from a thread",
        "Any thread may submit: the loop wakes at once, and every submitter gets an answer.",
        from_thread,
    ),
    Stop(
        "A child process",
        "It has exited, yet a grandchild holds its pipe: leaving ends the whole group, and hears it.",
        grandchild,
    ),
    Stop(
        "The schedule that breaks it",
        "A test runs one schedule. The explorer cancels at every step, and shows the one that breaks it.",
        cancelled_everywhere,
    ),
    Stop(
        "What is left behind",
        "A test under `pytest --holdfast`, or a block, says what it leaves, and where that was born.",
        left_behind,
    ),
)
