"""Closes at exit what the first two versions leave on a stopped loop.

Otherwise the interpreter would print warnings about it below the output.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from typing import Any

from examples.prefetch.interfaces import Connect, Session

__all__ = ["close_all", "close_at_exit"]

_opened: list[tuple[asyncio.AbstractEventLoop, Session]] = []


def close_at_exit(connect: Callable[[], Session]) -> Connect:
    """A `connect` that records each session, with its loop."""

    def recording() -> Session:
        session = connect()
        _opened.append((asyncio.get_running_loop(), session))
        return session

    return recording


@atexit.register
def close_all() -> None:
    """End the tasks, the session and the loop of each program that has left them open."""
    while _opened:
        loop, session = _opened.pop()
        if not loop.is_closed():
            # Before the loop runs: since 3.14 `all_tasks` for the loop that runs here would miss
            # the tasks that another thread has created (gh-128002).
            loop.run_until_complete(_end(session, asyncio.all_tasks(loop)))
            loop.close()


async def _end(session: Session, tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await session.__aexit__(None, None, None)
