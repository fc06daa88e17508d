import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing


async def store_all(
    rows: AsyncGenerator[int, None], store: Callable[[int], Coroutine[None, None, None]]
) -> None:
    queue: asyncio.Queue[int | None] = asyncio.Queue(maxsize=2)

    async def consume() -> None:
        while (row := await queue.get()) is not None:
            await store(row)

    async with asyncio.TaskGroup() as group, aclosing(rows):
        for _ in range(2):
            group.create_task(consume())
        async for row in rows:
            await queue.put(row)
        for _ in range(2):
            await queue.put(None)
