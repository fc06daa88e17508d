from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing

import anyio
from anyio.abc import ObjectReceiveStream


async def store_all(
    rows: AsyncGenerator[int, None], store: Callable[[int], Coroutine[None, None, None]]
) -> None:
    send, receive = anyio.create_memory_object_stream[int](2)

    async def consume(received: ObjectReceiveStream[int]) -> None:
        async with received:
            async for row in received:
                await store(row)

    async with anyio.create_task_group() as group, aclosing(rows), send:
        async with receive:
            for _ in range(2):
                group.start_soon(consume, receive.clone())
        async for row in rows:
            await send.send(row)
