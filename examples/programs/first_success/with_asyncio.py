import asyncio
from collections.abc import Callable, Coroutine, Iterable


async def first_success(
    fetch: Callable[[str], Coroutine[None, None, str]], mirrors: Iterable[str]
) -> str:
    tasks = [asyncio.create_task(fetch(mirror)) for mirror in mirrors]
    errors: list[Exception] = []
    try:
        for first in asyncio.as_completed(tasks):
            try:
                return await first
            except Exception as error:
                errors.append(error)
        raise ExceptionGroup("every mirror failed", errors)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
