"""Show the ticks of several feeds as they arrive, until all feeds have ended or `show` says stop.

Every feed is closed at the end. If one of them fails, its error is raised.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any


async def demo(version: Any) -> object:
    shown: list[str] = []
    opened = closed = 0

    async def feed(name: str, count: int, seconds: float) -> AsyncGenerator[str, None]:
        nonlocal opened, closed
        opened += 1
        try:
            for n in range(count):
                await asyncio.sleep(seconds)
                yield f"{name}{n}"
            if name == "broken":
                raise OSError(name)
        finally:
            closed += 1

    def show(tick: str) -> bool:
        shown.append(tick)
        return tick != "c1"

    await version.show_all([feed("a", 2, 2), feed("b", 2, 3)], show)
    await version.show_all([feed("c", 9, 2), feed("d", 9, 3)], show)
    failures: list[str] = []
    try:
        await version.show_all([feed("e", 9, 9), feed("broken", 1, 3)], show)
    except* OSError as group:
        failures += map(repr, group.exceptions)
    await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return shown, failures, opened, closed
