"""The first answer of several servers, or None after two seconds; no request is left running."""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    ended: list[float] = []

    async def ask(delay: float) -> str:
        try:
            await asyncio.sleep(delay)
            return f"after {delay}"
        finally:
            ended.append(delay)

    in_time = await version.first_answer(ask, [0.1, 3600])
    too_late = await version.first_answer(ask, [1800, 3600])
    return in_time, too_late, sorted(ended)
