"""An SDK in the shape in which they are published: its stream yields inside the task group that
watches its CLI. (claude-code-sdk 0.0.10 does that with anyio.)

The CLI itself is well looked after, so that only the stream is in question.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple

import holdfast

__all__ = ["Connect", "Message", "Output", "Sdk", "SdkError", "command"]

Message = dict[str, Any]


class Output(NamedTuple):
    """What a CLI says, line by line."""

    stdout: AsyncIterator[bytes]
    stderr: AsyncIterator[bytes]


Connect = Callable[[str], AbstractAsyncContextManager[Output]]
"""Starts a CLI with a prompt; leaving ends it."""


class SdkError(Exception):
    """The CLI has failed."""


class Sdk:
    """Asks a CLI, and streams what it says."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self.running = 0
        """How many CLIs are there."""

    async def query(self, prompt: str) -> AsyncGenerator[Message, None]:
        """The messages of the CLI, as they come."""
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
    """A CLI that is a program."""

    @asynccontextmanager
    async def connect(prompt: str) -> AsyncIterator[Output]:
        async with holdfast.Process(*words, prompt) as process:
            yield Output(process.stdout.lines(), process.stderr.lines())

    return connect
