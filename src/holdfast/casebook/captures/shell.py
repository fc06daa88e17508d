"""What a command says, line by line. Whoever stops listening has ended the command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import holdfast

__all__ = ["Run", "run"]

Run = Callable[[str], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Starts a command, and gives its lines; leaving ends it."""


@asynccontextmanager
async def run(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Run a command in bash; leaving ends it and all that it has started."""
    async with holdfast.Process("bash", "-c", command) as process:
        yield process.stdout.lines()
