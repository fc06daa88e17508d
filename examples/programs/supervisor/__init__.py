"""Restart a service when it fails, after pauses that double; give up at the fourth failure in a minute."""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    starts: list[int] = []

    async def service() -> None:
        starts.append(round(loop.time() - begin))
        if len(starts) != 3:  # the third start works, until the work is over
            raise OSError("connection refused")
        await asyncio.Event().wait()

    async def work() -> str:
        await asyncio.sleep(10)
        return "worked"

    result = await version.supervised(service, work)
    try:
        await version.supervised(service, work)
    except* Exception as group:
        result += f", then {len(group.exceptions)} error"
    await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return result, starts
