import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import handfast

Listening = Callable[[], AbstractAsyncContextManager[int]]


async def serve(ready: Callable[[int], None], listening: Listening) -> None:
    async with listening() as port:
        ready(port)
        await asyncio.Event().wait()


async def use_server(listening: Listening, client: Callable[[int], Awaitable[str]]) -> str:
    async with handfast.Scope() as scope:
        port = await scope.start(serve, listening)
        answer = await client(port)
        scope.cancel()
    return answer
