import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import handfast


@asynccontextmanager
async def autosave(
    save: Callable[[str, str], Awaitable[None]],
) -> AsyncIterator[Callable[[str, str], Awaitable[object]]]:
    async def save_later(document: str, text: str) -> None:
        await asyncio.sleep(1)
        await save(document, text)

    async with handfast.Scope("autosave", on_failure="report") as scope:
        tasks = handfast.KeyedTasks(scope)
        yield lambda document, text: tasks.replace(document, save_later, document, text)
