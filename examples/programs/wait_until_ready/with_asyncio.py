import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

Listening = Callable[[], AbstractAsyncContextManager[int]]


async def serve(ready: asyncio.Future[int], listening: Listening) -> None:
    async with listening() as port:
        ready.set_result(port)
        await asyncio.Event().wait()


async def use_server(listening: Listening, client: Callable[[int], Awaitable[str]]) -> str:
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        server = group.create_task(serve(ready, listening))
        port = await ready  # if the server fails before, the group cancels this
        answer = await client(port)
        server.cancel()
    return answer
