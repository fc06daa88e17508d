import asyncio
from collections.abc import Callable, Coroutine, Iterable


async def first_answer(
    ask: Callable[[float], Coroutine[None, None, str]], servers: Iterable[float]
) -> str | None:
    tasks = [asyncio.create_task(ask(server)) for server in servers]
    errors: list[Exception] = []
    try:
        async with asyncio.timeout(2):
            for first in asyncio.as_completed(tasks):
                try:
                    return await first
                except Exception as error:
                    errors.append(error)
        raise ExceptionGroup("every server failed", errors)
    except TimeoutError:
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
