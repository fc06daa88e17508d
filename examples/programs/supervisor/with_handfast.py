from collections.abc import Awaitable, Callable

import handfast


async def supervised(
    service: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[str]]
) -> str:
    async with handfast.Scope() as scope:
        scope.supervise(service, restart=handfast.Restart(intensity=3, period=60, backoff=1))
        return await work()
