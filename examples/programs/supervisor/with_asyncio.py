import asyncio
import logging
from collections.abc import Awaitable, Callable


async def keep_running(service: Callable[[], Awaitable[None]]) -> None:
    clock = asyncio.get_running_loop().time
    failures: list[float] = []
    while True:
        try:
            return await service()
        except Exception:
            failures = [time for time in failures if time > clock() - 60]
            if len(failures) == 3:
                raise
            failures.append(clock())
            logging.exception("the service failed and is started again")
        await asyncio.sleep(2 ** (len(failures) - 1))


async def supervised(
    service: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(keep_running(service))
        result = await work()
        running.cancel()
    return result
