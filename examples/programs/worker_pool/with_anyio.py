import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def mailer(
    deliver: Callable[[str], Coroutine[None, None, None]],
) -> AsyncIterator[Callable[[str], object]]:
    limit = anyio.CapacityLimiter(3)

    async def attempt(mail: str) -> None:
        async with limit:
            try:
                await deliver(mail)
            except Exception:
                logging.exception("mail %s failed", mail)

    async with anyio.create_task_group() as group:
        yield lambda mail: group.start_soon(attempt, mail)
        group.cancel_scope.deadline = anyio.current_time() + 60
