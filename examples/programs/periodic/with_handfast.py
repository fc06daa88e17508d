from collections.abc import Awaitable, Callable

import handfast


async def refreshed(
    refresh: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with handfast.Scope() as scope:
        scope.supervise(refresh, every=60)
        return await work()
