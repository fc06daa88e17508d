"""Run a confirmed bug: on asyncio's own loop, or with `--explore` under the explorer.

Exit status 1: the bug is there; 0: it is not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

Program = Callable[[], Coroutine[Any, Any, None]]
# Longer than anything here needs: what still waits then waits forever.
PATIENCE = 2.0


def main(program: Program, reproduce: Program, **options: Any) -> None:
    """Run one of the two, and exit."""
    if "--explore" in sys.argv:
        from handfast.explore import explore

        found = explore(program, **{"cancel": True, "schedules": 2000, **options})
        print(found.counterexample or found.summary)
        sys.exit(1 if found.counterexample else 0)
    try:
        asyncio.run(reproduce())
    except Bug as bug:
        print(f"the bug is there: {bug}")
        sys.exit(1)
    print("the bug is not there")


class Bug(Exception):
    """What is wrong, in words."""


async def ends(awaitable: Awaitable[Any], otherwise: str) -> Any:
    """What it returns; a bug if it never returns."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await awaitable
    except TimeoutError:
        raise Bug(otherwise) from None


async def cancel(task: asyncio.Task[Any], steps: int = 3) -> None:
    """Let a task run for some iterations of the loop, cancel it, and wait for its end."""
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
