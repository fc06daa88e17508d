"""Programs with a planted bug, and right ones, at the top of a module so that workers can import them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

from handfast.explore import latency


async def between_two_answers() -> None:
    """Fails if b's answer comes between the two of a: an ordering bug of depth 2."""
    seen: list[str] = []

    async def a() -> None:
        for _ in range(2):
            await latency(name="a")
            seen.append("a")

    async def b() -> None:
        await latency(name="b")
        seen.append("b")

    await asyncio.gather(a(), b())
    assert seen != ["a", "b", "a"]


async def first_comes_last() -> None:
    """Fails if three answers come in the reverse of the plain order."""
    seen: list[int] = []

    async def ask(number: int) -> None:
        await latency()
        seen.append(number)

    await asyncio.gather(*(ask(number) for number in range(3)))
    assert seen != [2, 1, 0]


async def two_answers_each() -> None:
    """Right, whatever comes first."""

    async def ask() -> None:
        await latency()
        await latency()

    await asyncio.gather(ask(), ask())


async def refused() -> None:
    asyncio.get_running_loop().add_reader(0, print)


async def two_timers() -> None:
    """Fails if the second timer fires with the first, so only if the loop is late."""
    seen: list[str] = []

    async def note(name: str, delay: float) -> None:
        await asyncio.sleep(delay)
        seen.append(name)
        await asyncio.sleep(0)
        seen.append(name)

    await asyncio.gather(note("a", 0.01), note("b", 0.03))
    assert seen == ["a", "a", "b", "b"]


async def cancelled_clean_up() -> None:
    """Fails if its task is cancelled before it has started."""
    cleaned: list[bool] = []

    async def task() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            cleaned.append(True)

    await asyncio.wait([asyncio.create_task(task())])
    if not cleaned:
        raise RuntimeError("not cleaned up")


async def only_one_schedule() -> None:
    await asyncio.sleep(0)


async def fails_at_once() -> None:
    raise LookupError("planted")


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.lock = threading.Lock()  # cannot be pickled, whatever copyreg knows about exceptions


def not_async() -> None:
    raise Unpicklable(1, 2)


async def ends_its_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
