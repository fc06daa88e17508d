from collections.abc import AsyncGenerator, Callable, Coroutine

import handfast


async def store_all(
    rows: AsyncGenerator[int, None], store: Callable[[int], Coroutine[None, None, None]]
) -> None:
    async with handfast.Scope() as scope:
        async for _ in scope.map(store, rows, limit=2, ordered=False):
            pass
