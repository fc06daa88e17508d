import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def autosave(
    save: Callable[[str, str], Awaitable[None]],
) -> AsyncIterator[Callable[[str, str], Awaitable[object]]]:
    running: dict[str, tuple[anyio.CancelScope, anyio.Event]] = {}

    async def save_later(document: str, text: str) -> None:
        scope, ended = running[document]
        try:
            with scope:
                await anyio.sleep(1)
                await save(document, text)
        except Exception:
            logging.exception("cannot save %s", document)
        finally:
            del running[document]
            ended.set()

    async def edit(document: str, text: str) -> None:
        while document in running:  # a loop: another edit may start a task during the wait
            scope, ended = running[document]
            scope.cancel()
            await ended.wait()
        running[document] = anyio.CancelScope(), anyio.Event()
        group.start_soon(save_later, document, text)

    async with anyio.create_task_group() as group:
        yield edit
