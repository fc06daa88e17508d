"""The coroutines that every contestant runs. They do nothing, so that only the tracking costs."""

from __future__ import annotations

import asyncio


async def no_op() -> None:
    """Ends at its first step."""


async def wait_forever() -> None:
    """Runs until it is cancelled."""
    await asyncio.get_running_loop().create_future()
