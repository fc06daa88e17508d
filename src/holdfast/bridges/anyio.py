"""anyio: a task group of anyio's that a scope owns.

anyio's cancel scopes, time-outs and threads work inside the tasks of a scope, and a scope works
inside a task group, as they are. What does not work is a task group that is opened in one method
and closed in another: it has to be left in the task that entered it. A scope can see to that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast import Scope, WrongLoop
from holdfast.bridges.absent import absent

try:
    import anyio
    from anyio.abc import TaskGroup
except ModuleNotFoundError as error:
    raise absent("anyio", "anyio") from error

__all__ = ["task_group"]


async def task_group(
    scope: Scope, *, name: str = "task group", deadline: float = 10.0
) -> TaskGroup:
    """A real task group of anyio's, for code that wants one (`start`, `start_soon`). It lives as
    long as `scope`: when that closes, the group's tasks are cancelled and joined.

    It may be used in any task. A task of its own that fails cancels its siblings, and is a
    failure of the scope. What the group uses is to be held before it: later things close first.
    `await scope.release(group)` ends it before the scope does.

    >>> async def listen(address, *, task_status):
    ...     task_status.started(f"listening on {address}")
    ...     await anyio.sleep_forever()
    >>> async def main():
    ...     async with Scope("server") as scope:
    ...         group = await task_group(scope)
    ...         print(await group.start(listen, "port 80"))
    >>> anyio.run(main)
    listening on port 80

    Parameters:
        name: what reports call it.
        deadline: seconds in which its tasks have to end once they are cancelled.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise WrongLoop(
            "a scope runs on asyncio, and no asyncio event loop runs here: with anyio use "
            'anyio.run(main, backend="asyncio"), which is its default'
        ) from None
    return await scope.hold(_cancelled_in_the_end(), name=name, deadline=deadline)


@asynccontextmanager
async def _cancelled_in_the_end() -> AsyncIterator[TaskGroup]:
    """Left by itself, a group would wait for its tasks as long as they please."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()
