"""Seven small programs, one for each main feature, written as a user would write them.

Each is one function that uses only public names and returns a text about what happened.
`python -m examples first_steps` shows its source and that text.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import handfast
from handfast import explore, leaks

__all__ = ["STEPS", "Step"]


class Step(NamedTuple):
    """A program, and the sentence that says what it shows."""

    title: str
    summary: str
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
        async with handfast.Scope("checkout") as scope:
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

    scope = handfast.Scope("bot", on_failure="report")
    scope.spawn(asyncio.sleep(0.05), name="quick")
    scope.spawn(asyncio.sleep(60), name="slow")
    left = scope.spawn(stubborn(), name="stubborn")
    try:
        report = await scope.close(grace=0.2, timeout=0.5)
    finally:
        gate.set()
    await asyncio.wait({left})
    return str(report)


async def replaced() -> str:
    edits: list[int] = []

    async def edit_message(number: int) -> None:
        await asyncio.sleep(0)
        edits.append(number)

    async with handfast.Scope("chat") as scope:
        tasks = handfast.KeyedTasks(scope)
        for number in range(1000):
            await tasks.replace("alice", edit_message, number)
    return f"edits by {edits} of 1000, entries left: {len(tasks)}"


async def from_thread() -> str:
    async def answer(submitted_on: str) -> str:
        here = threading.current_thread().name
        return f"submitted on {submitted_on}, answered on {here}"

    async with handfast.Scope("service") as scope:

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
    async with handfast.Process("sh", "-c", script) as process:
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


async def leaked_task() -> str:
    async def poll() -> None:
        await asyncio.sleep(60)

    try:
        async with leaks.no_leaks():
            asyncio.create_task(poll(), name="poll")  # the bug
    except leaks.LeakError as error:
        return str(error.leaks[0])
    return "nothing"


STEPS = (
    Step(
        "A child fails",
        "Its siblings are cancelled and joined, and the block raises the error.",
        failing_child,
    ),
    Step(
        "An owner closes",
        "Close returns within its deadline and names each task that still runs, and where it waits.",
        straggler,
    ),
    Step(
        "One task per key",
        "A replaced task has no further effect, and a finished one leaves no entry.",
        replaced,
    ),
    Step(
        "Work from a thread",
        "Any thread may submit: the loop wakes at once, and every submission gets a result.",
        from_thread,
    ),
    Step(
        "A child process",
        "It has exited, yet a grandchild holds its pipe: the block ends and reads the whole group.",
        grandchild,
    ),
    Step(
        "The schedule that breaks it",
        "A test runs one schedule. The explorer cancels at every step and shows the schedule that fails.",
        cancelled_everywhere,
    ),
    Step(
        "A leaked task",
        "`pytest --handfast` or `leaks.no_leaks()` names what leaks, and where it was created.",
        leaked_task,
    ),
)
