from collections.abc import Callable, Coroutine, Iterable

import anyio


async def fetch_all(
    fetch: Callable[[int], Coroutine[None, None, str]], addresses: Iterable[int]
) -> list[str]:
    limit = anyio.CapacityLimiter(3)
    pages: dict[int, str] = {}

    async def attempt(number: int, address: int) -> None:
        async with limit:
            pages[number] = await fetch(address)

    async with anyio.create_task_group() as group:
        for number, address in enumerate(addresses):
            group.start_soon(attempt, number, address)
    return [pages[number] for number in sorted(pages)]
