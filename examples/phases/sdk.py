"""An SDK whose stream yields inside the task group that watches its CLI.

Published SDKs do this (claude-code-sdk 0.0.10, with anyio). The CLI itself is ended correctly, so
that the stream is the only problem.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import handfast

__all__ = ["Connect", "Message", "Output", "Sdk", "SdkError", "command"]

Message = dict[str, Any]


class Output(NamedTuple):
    """The output of a CLI, line by line."""

    stdout: AsyncIterator[bytes]
    stderr: AsyncIterator[bytes]


Connect = Callable[[str], AbstractAsyncContextManager[Output]]
"""Starts a CLI with a prompt; leaving the block ends it."""


class SdkError(Exception):
    """The CLI failed."""


class Sdk:
    """Runs a CLI and streams its messages."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.running = 0
        """The number of running CLIs."""

    async def query(self, prompt: str) -> AsyncGenerator[Message, None]:
        """Yield the messages of the CLI."""
        async with self._connected(prompt) as output, asyncio.TaskGroup() as group:
            group.create_task(_watch(output.stderr))
            async for line in output.stdout:
                yield json.loads(line)

    @asynccontextmanager
    async def _connected(self, prompt: str) -> AsyncIterator[Output]:
        self.running += 1
        try:
            async with self._connect(prompt) as output:
                yield output
        finally:
            self.running -= 1


async def _watch(stderr: AsyncIterator[bytes]) -> None:
    async for line in stderr:
        raise SdkError(line.decode().strip())


def command(*words: str) -> Connect:
    """Run this command, with the prompt as its last argument."""

    @asynccontextmanager
    async def connect(prompt: str) -> AsyncIterator[Output]:
        async with handfast.Process(*words, prompt) as process:
            yield Output(process.stdout.lines(), process.stderr.lines())

    return connect
