"""Start a server, wait until it listens, use it, and stop it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


async def demo(version: Any) -> object:
    log: list[str] = []

    @asynccontextmanager
    async def listening() -> AsyncIterator[int]:
        await asyncio.sleep(0.1)
        log.append("opened")
        try:
            yield 8080
        finally:
            log.append("closed")

    @asynccontextmanager
    async def failing() -> AsyncIterator[int]:
        await asyncio.sleep(0.1)
        raise OSError("address in use")
        yield 0

    async def client(port: int) -> str:
        await asyncio.sleep(0.1)
        log.append("used")
        return f"answer of {port}"

    answer = await version.use_server(listening, client)
    try:
        await version.use_server(failing, client)
    except* OSError:
        log.append("failed")
    await asyncio.sleep(0)  # a cancel that came together with the failure is raised here
    return answer, log
