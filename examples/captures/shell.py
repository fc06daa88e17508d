"""Runs a command in bash and yields its output line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import handfast

__all__ = ["Run", "run"]

Run = Callable[[str], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Starts a command and yields its lines; leaving the block ends the command."""


@asynccontextmanager
async def run(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Run a command in bash. Leaving the block ends it and its process group."""
    async with handfast.Process("bash", "-c", command) as process:
        yield process.stdout.lines()
