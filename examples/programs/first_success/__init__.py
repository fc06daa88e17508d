"""Ask all mirrors at once; the first success wins, and the others have ended when it returns."""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    ended: list[str] = []

    async def fetch(mirror: str) -> str:
        try:
            await asyncio.sleep({"broken": 0.1, "quick": 0.2, "slow": 3600}[mirror])
            if mirror == "broken":
                raise OSError(mirror)
            return f"from {mirror}"
        finally:
            ended.append(mirror)

    page = await version.first_success(fetch, ["slow", "broken", "quick"])
    failures = 0
    try:
        await version.first_success(fetch, ["broken", "broken"])
    except* OSError as group:
        failures = len(group.exceptions)
    await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return page, ended, failures
