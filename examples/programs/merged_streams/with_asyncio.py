import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing


async def show_all(feeds: Iterable[AsyncGenerator[str, None]], show: Callable[[str], bool]) -> None:
    queue: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)

    async def pump(feed: AsyncGenerator[str, None]) -> None:
        async with aclosing(feed):
            async for tick in feed:
                await queue.put(tick)
        await queue.put(None)

    async with asyncio.TaskGroup() as group:
        pumps = [group.create_task(pump(feed)) for feed in feeds]
        left = len(pumps)
        while left:
            tick = await queue.get()
            if tick is None:
                left -= 1
            elif not show(tick):
                break
        for task in pumps:
            task.cancel()
