"""The event loops on which a work is measured, beside asyncio's own."""

from __future__ import annotations

import asyncio
from typing import Any


def uvloop_or_stock() -> asyncio.AbstractEventLoop:
    """A loop of uvloop. Without it a stock loop, on which no lap is run: its contestants need it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def wrapping() -> asyncio.AbstractEventLoop:
    """A stock loop whose task factory puts a coroutine around each, as tracing libraries do."""
    loop = asyncio.new_event_loop()
    loop.set_task_factory(_wrap)
    return loop


def _wrap(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    async def traced() -> Any:
        return await coro

    return asyncio.Task(traced(), loop=loop, **options)
