from collections.abc import Callable, Coroutine, Iterable

import anyio


async def first_answer(
    ask: Callable[[float], Coroutine[None, None, str]], servers: Iterable[float]
) -> str | None:
    answers: list[str] = []
    errors: list[Exception] = []

    async def attempt(server: float) -> None:
        try:
            answers.append(await ask(server))
        except Exception as error:
            errors.append(error)
        else:
            group.cancel_scope.cancel()

    with anyio.move_on_after(2) as time_limit:
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(attempt, server)
    if answers or time_limit.cancelled_caught:
        return answers[0] if answers else None
    raise ExceptionGroup("every server failed", errors)
