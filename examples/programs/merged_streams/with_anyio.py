from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

import anyio
from anyio.abc import ObjectSendStream


async def show_all(feeds: Iterable[AsyncGenerator[str, None]], show: Callable[[str], bool]) -> None:
    send, receive = anyio.create_memory_object_stream[str]()

    async def pump(feed: AsyncGenerator[str, None], out: ObjectSendStream[str]) -> None:
        async with out, aclosing(feed):
            async for tick in feed:
                await out.send(tick)

    async with anyio.create_task_group() as group, receive:
        async with send:
            for feed in feeds:
                group.start_soon(pump, feed, send.clone())
        async for tick in receive:
            if not show(tick):
                break
        group.cancel_scope.cancel()
