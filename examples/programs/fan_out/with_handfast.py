from collections.abc import Callable, Coroutine, Iterable

import handfast


async def fetch_all(
    fetch: Callable[[int], Coroutine[None, None, str]], addresses: Iterable[int]
) -> list[str]:
    async with handfast.Scope() as scope:
        return [page async for page in scope.map(fetch, addresses, limit=3)]
