"""What the first two programs leave on a loop that has stopped is put away when the interpreter ends.

Else its last words about them would stand below whatever has been shown.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable

from holdfast.casebook.prefetch.outside import Connect, Session

__all__ = ["all_that_is_left", "put_away_later"]

_opened: list[tuple[asyncio.AbstractEventLoop, Session]] = []


def put_away_later(connect: Callable[[], Session]) -> Connect:
    """The same `connect`; what it opens is remembered, with its loop."""

    def remembering() -> Session:
        session = connect()
        _opened.append((asyncio.get_running_loop(), session))
        return session

    return remembering


@atexit.register
def all_that_is_left() -> None:
    """End the tasks, the session and the loop of each program that has not done so itself."""
    while _opened:
        loop, session = _opened.pop()
        if not loop.is_closed():
            loop.run_until_complete(_end(session))
            loop.close()


async def _end(session: Session) -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await session.__aexit__(None, None, None)
