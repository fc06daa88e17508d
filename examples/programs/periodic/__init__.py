"""Refresh every minute while the work goes on; a run that fails is logged, and the next one comes."""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    runs: list[int] = []

    async def refresh() -> None:
        runs.append(round(loop.time() - begin))
        if len(runs) == 2:
            raise OSError("this run fails")
        await asyncio.sleep(70 if len(runs) == 3 else 1)  # the third one misses a time

    async def work() -> str:
        await asyncio.sleep(330)
        return "worked"

    return await version.refreshed(refresh, work), runs
