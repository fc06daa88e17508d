from collections.abc import Callable, Coroutine, Iterable

import anyio


async def first_success(
    fetch: Callable[[str], Coroutine[None, None, str]], mirrors: Iterable[str]
) -> str:
    pages: list[str] = []
    errors: list[Exception] = []

    async def attempt(mirror: str) -> None:
        try:
            pages.append(await fetch(mirror))
        except Exception as error:
            errors.append(error)
        else:
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for mirror in mirrors:
            group.start_soon(attempt, mirror)
    if not pages:
        raise ExceptionGroup("every mirror failed", errors)
    return pages[0]
