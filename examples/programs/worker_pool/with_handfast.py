from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import handfast


@asynccontextmanager
async def mailer(
    deliver: Callable[[str], Coroutine[None, None, None]],
) -> AsyncIterator[Callable[[str], object]]:
    async with handfast.Scope("mailer", limit=3, on_failure="report", grace=60) as scope:
        yield lambda mail: scope.spawn(deliver(mail))
