from collections.abc import Callable, Coroutine, Iterable

import handfast


async def first_success(
    fetch: Callable[[str], Coroutine[None, None, str]], mirrors: Iterable[str]
) -> str:
    return await handfast.race(*[fetch(mirror) for mirror in mirrors])
