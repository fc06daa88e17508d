import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def autosave(
    save: Callable[[str, str], Awaitable[None]],
) -> AsyncIterator[Callable[[str, str], Awaitable[object]]]:
    tasks: dict[str, asyncio.Task[None]] = {}

    async def save_later(document: str, text: str) -> None:
        await asyncio.sleep(1)
        try:
            await save(document, text)
        except Exception:
            logging.exception("cannot save %s", document)

    async def edit(document: str, text: str) -> None:
        while document in tasks:  # a loop: another edit may start a task during the wait
            tasks[document].cancel()
            await asyncio.wait({tasks[document]})
        task = tasks[document] = group.create_task(save_later(document, text))
        task.add_done_callback(lambda _: tasks.pop(document))

    async with asyncio.TaskGroup() as group:
        yield edit
