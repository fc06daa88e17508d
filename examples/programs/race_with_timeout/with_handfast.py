import asyncio
from collections.abc import Callable, Coroutine, Iterable

import handfast


async def first_answer(
    ask: Callable[[float], Coroutine[None, None, str]], servers: Iterable[float]
) -> str | None:
    try:
        async with asyncio.timeout(2):
            return await handfast.race(*[ask(server) for server in servers])
    except TimeoutError:
        return None
