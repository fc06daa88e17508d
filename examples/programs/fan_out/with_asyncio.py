import asyncio
from collections.abc import Callable, Coroutine, Iterable


async def fetch_all(
    fetch: Callable[[int], Coroutine[None, None, str]], addresses: Iterable[int]
) -> list[str]:
    limit = asyncio.Semaphore(3)

    async def attempt(address: int) -> str:
        async with limit:
            return await fetch(address)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(address)) for address in addresses]
    return [task.result() for task in tasks]
