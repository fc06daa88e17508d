"""The same commands in a window of tmux, where that is installed: as in the report, people can look
over the bot's shoulder.

The bot is a client in control mode, so that what the window shows comes line by line. The server is a
daemon, out of reach of its client's end: it is ended by name.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import holdfast

__all__ = ["run"]

_OUTPUT = re.compile(rb"%output %\d+ (.*)\n", re.DOTALL)
_ESCAPED = re.compile(rb"\\(\d{3})")
_number = itertools.count(1)


@asynccontextmanager
async def run(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Run a command in a window of a server of its own; leaving ends the server."""
    tmux = ("tmux", "-L", f"holdfast-{os.getpid()}-{next(_number)}", "-f", "/dev/null")
    async with holdfast.Process(*tmux, "-C", "new-session", command) as client:
        try:
            yield _shown(client.stdout.lines())
        finally:
            await holdfast.shielded(_end(*tmux), deadline=5)


async def _shown(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What the window shows, out of what tmux tells its client."""
    async for line in lines:
        if told := _OUTPUT.fullmatch(line):
            yield _ESCAPED.sub(lambda each: bytes([int(each[1], 8)]), told[1])


async def _end(*tmux: str) -> None:
    async with holdfast.Process(*tmux, "kill-server") as ending:
        await ending.wait()
