"""Programs for `handfast stress`: one that keeps what it starts, one that fails by itself."""

from __future__ import annotations

import asyncio

__all__ = ["fails", "grows"]

_kept: list[asyncio.Task[None]] = []


async def grows() -> None:
    """Each run leaves a task behind."""
    _kept.append(asyncio.create_task(asyncio.sleep(3600)))
    await asyncio.sleep(0)


async def fails() -> None:
    """It fails without any cancel."""
    raise ValueError("by itself")
