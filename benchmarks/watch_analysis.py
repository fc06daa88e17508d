"""What a search for kept tasks, and one for tasks that never wake, cost in a large heap.

    python -m benchmarks.watch_analysis [objects]

The searches run in a thread of their own, as in the agent, while a thread beside it notes for how
long it could not run: as long as that, a loop is held up.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from typing import Any

from handfast._watch.agent.kept import find_kept
from handfast._watch.never_wakes import find_never_waking

GROUPS = 50


class Row:
    """A typical object: two containers in its attributes."""

    def __init__(self, number: int) -> None:
        self.numbers = [number]
        self.data = {"number": number, "list": [1]}


class Stall(threading.Thread):
    """The longest time that this thread could not run."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0
        self._ended = False

    def run(self) -> None:
        last = time.perf_counter()
        while not self._ended:
            time.sleep(0)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last)
            last = now

    def end(self) -> float:
        self._ended = True
        self.join()
        return self.longest


async def wait(event: asyncio.Event) -> None:
    await event.wait()


async def nothing() -> None: ...


async def main(objects: int) -> None:
    rows = [Row(number) for number in range(objects // 4)]
    kept = [asyncio.create_task(nothing()) for _ in range(1000)]
    dead = [asyncio.create_task(wait(asyncio.Event())) for _ in range(GROUPS // 2)]
    events = [asyncio.Event() for _ in range(GROUPS // 2)]
    globals()["KEPT"], globals()["EVENTS"] = kept, events
    alive = [asyncio.create_task(wait(event)) for event in events]
    await asyncio.sleep(0)
    gc.collect()
    sys.stdout.write(f"{len(gc.get_objects())} objects, {GROUPS} groups, {len(rows)} rows\n")
    groups = [(number, task, 1) for number, task in enumerate(dead + alive)]
    for budget in (0.1, 60.0):
        await report(f"never wakes, {budget:g} s", lambda b=budget: never(groups, b))
    await report("kept", lambda: [each.count for each in find_kept(lambda task: None)])


def never(groups: list[Any], budget: float) -> str:
    found = find_never_waking(groups, budget)
    return f"{len(found.dead)} dead, {found.not_checked or 'all checked'}"


async def report(name: str, search: Any) -> None:
    def timed() -> tuple[Any, float]:
        begin = time.thread_time()
        return search(), time.thread_time() - begin

    stall = Stall()
    stall.start()
    result, used = await asyncio.to_thread(timed)
    sys.stdout.write(
        f"{name}: {1000 * used:.0f} ms of CPU, another thread stood still for at most "
        f"{1000 * stall.end():.0f} ms: {result}\n"
    )


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:] or ["1200000"])))
