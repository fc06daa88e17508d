"""anyio: a task group of anyio that a scope owns.

anyio's cancel scopes, time-outs and threads work inside the tasks of a scope, and a scope works
inside a task group. What does not work is a task group that one method opens and another closes:
it must be left in the task that entered it. `Scope.hold` does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from handfast import Scope
from handfast._missing_extra import missing_for_bridge
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast.errors import WrongLoop

try:
    import anyio
    from anyio.abc import TaskGroup
except ModuleNotFoundError as error:
    raise missing_for_bridge("anyio") from error

__all__ = ["task_group"]


async def task_group(
    scope: Scope, *, name: str = "task group", timeout: float = CLOSE_TIMEOUT
) -> TaskGroup:
    """Return a task group of anyio, for code that needs one (`start`, `start_soon`). It lives as
    long as `scope`: when that closes, the tasks of the group are cancelled and joined.

    Any task may use it. If one of its tasks fails, the others are cancelled, and it is a failure
    of the scope. Let the scope hold what the group uses before the group: it closes in reverse
    order. `await scope.release(group)` ends the group before the scope.

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
        name: its name in reports.
        timeout: seconds that its tasks get to end after the cancel.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise WrongLoop(
            "a scope runs on asyncio, and no asyncio event loop runs here: with anyio use "
            'anyio.run(main, backend="asyncio"), which is its default'
        ) from None
    return await scope.hold(_cancelled_at_exit(), name=name, timeout=timeout)


@asynccontextmanager
async def _cancelled_at_exit() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled at exit; otherwise it would wait for its tasks."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()
