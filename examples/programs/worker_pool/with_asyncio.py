import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def mailer(
    deliver: Callable[[str], Coroutine[None, None, None]],
) -> AsyncIterator[Callable[[str], object]]:
    limit = asyncio.Semaphore(3)

    async def attempt(mail: str) -> None:
        async with limit:
            try:
                await deliver(mail)
            except Exception:
                logging.exception("mail %s failed", mail)

    try:
        async with asyncio.timeout(None) as rest, asyncio.TaskGroup() as group:
            yield lambda mail: group.create_task(attempt(mail))
            rest.reschedule(asyncio.get_running_loop().time() + 60)
    except TimeoutError:
        if not rest.expired():
            raise
