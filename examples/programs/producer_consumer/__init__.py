"""A producer reads rows, and two consumers store them; a fast producer waits for the consumers.

It ends when all rows are stored. An error on either side ends the other one, and is raised.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any


async def demo(version: Any) -> object:
    stored: list[int] = []
    read = running = most = ahead = closed = 0

    async def rows(count: int, *, broken: bool = False) -> AsyncGenerator[int, None]:
        nonlocal read, ahead, closed
        read = len(stored)
        try:
            for row in range(count):
                read += 1
                ahead = max(ahead, read - len(stored))
                yield row
            if broken:
                raise OSError("source")
        finally:
            closed += 1

    async def store(row: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(1)
            if row == 20:
                raise OSError("full")
            stored.append(row)
        finally:
            running -= 1

    await version.store_all(rows(8), store)
    complete = sorted(stored)
    failures: list[str] = []
    for source in (rows(90), rows(6, broken=True)):
        try:
            await version.store_all(source, store)
        except* OSError as group:
            failures += map(str, group.exceptions)
        await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return complete, failures, most, ahead < 9, closed, running
