import logging
from collections.abc import Awaitable, Callable

import anyio


async def keep_running(service: Callable[[], Awaitable[None]]) -> None:
    failures: list[float] = []
    while True:
        try:
            return await service()
        except Exception:
            now = anyio.current_time()
            failures = [time for time in failures if time > now - 60]
            if len(failures) == 3:
                raise
            failures.append(now)
            logging.exception("the service failed and is started again")
        await anyio.sleep(2 ** (len(failures) - 1))


async def supervised(
    service: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with anyio.create_task_group() as group:
        group.start_soon(keep_running, service)
        result = await work()
        group.cancel_scope.cancel()
    return result
