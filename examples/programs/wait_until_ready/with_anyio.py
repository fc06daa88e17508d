from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import anyio
from anyio.abc import TaskStatus

Listening = Callable[[], AbstractAsyncContextManager[int]]


async def serve(listening: Listening, *, task_status: TaskStatus[int]) -> None:
    async with listening() as port:
        task_status.started(port)
        await anyio.sleep_forever()


async def use_server(listening: Listening, client: Callable[[int], Awaitable[str]]) -> str:
    async with anyio.create_task_group() as group:
        port = await group.start(serve, listening)
        answer = await client(port)
        group.cancel_scope.cancel()
    return answer
