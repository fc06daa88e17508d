"""Examine each kind of task on each loop, in a process of its own: a search looks through the whole
heap, and that of a test run is large. Run as a module; prints JSON, by loop and kind.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from typing import Any

import tests.watch.never_wakes.ended_by_others  # noqa: F401  (registers more kinds)
from handfast._watch.never_wakes import NeverWaking, find_never_waking
from tests.support.stepping import loop_kinds, new_loop
from tests.watch.never_wakes.tasks import ALIVE, DEAD, Start, World

ENOUGH = 60.0
LOOPS = ["stock", *(["uvloop"] if "uvloop" in loop_kinds() else [])]


async def examine(start: Start) -> tuple[int, NeverWaking]:
    """How many tasks there are, and what is found."""
    world = World()
    tasks = await start(world)
    for _ in range(5):
        await asyncio.sleep(0.001)
    groups = [(number, task, 1) for number, task in enumerate(tasks)]
    found = await asyncio.to_thread(find_never_waking, groups, ENOUGH)
    for undo in world.undo:
        undone: Any = undo()
        if inspect.isawaitable(undone):
            await undone
    for task in world.tasks:
        task.cancel()
    await asyncio.gather(*world.tasks, return_exceptions=True)
    return len(tasks), found


def run(start: Start, loop: str) -> dict[str, Any]:
    with asyncio.Runner(loop_factory=lambda: new_loop(loop)) as runner:
        count, found = runner.run(examine(start))
    return {"tasks": count, "dead": found.dead, "not_checked": found.not_checked}


if __name__ == "__main__":
    kinds = {**DEAD, **ALIVE}
    found = {loop: {name: run(start, loop) for name, start in kinds.items()} for loop in LOOPS}
    json.dump(found, sys.stdout)
