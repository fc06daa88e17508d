"""Fetch many pages, three at a time; the pages come in the order of their addresses.

If one of them fails, the others are cancelled, and its error is raised.
"""

import asyncio
from typing import Any


async def demo(version: Any) -> object:
    running = most = 0

    async def fetch(address: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(1 if address % 2 else 3)
            if address == 9:
                raise OSError(address)
            return f"page {address}"
        finally:
            running -= 1

    pages = await version.fetch_all(fetch, range(6))
    failures: list[str] = []
    try:
        await version.fetch_all(fetch, range(6, 20))
    except* OSError as group:
        failures += map(repr, group.exceptions)
    await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return pages, failures, most, running
