from collections.abc import AsyncGenerator, Callable, Iterable

import handfast


async def show_all(feeds: Iterable[AsyncGenerator[str, None]], show: Callable[[str], bool]) -> None:
    async with handfast.merge(*feeds) as ticks:
        async for tick in ticks:
            if not show(tick):
                break
