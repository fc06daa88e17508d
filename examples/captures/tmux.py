"""Runs a command in a tmux window, as in the report, if tmux is installed.

The bot is a client in control mode, so that it receives the window's output line by line. The tmux
server is a daemon and survives its client, so it is killed by the name of its socket.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import handfast

__all__ = ["run"]

_OUTPUT = re.compile(rb"%output %\d+ (.*)\n", re.DOTALL)
_ESCAPED = re.compile(rb"\\(\d{3})")
_number = itertools.count(1)


@asynccontextmanager
async def run(command: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """Run a command in a window of its own tmux server. Leaving the block ends the server."""
    tmux = ("tmux", "-L", f"handfast-{os.getpid()}-{next(_number)}", "-f", "/dev/null")
    async with handfast.Process(*tmux, "-C", "new-session", command) as client:
        try:
            yield _shown(client.stdout.lines())
        finally:
            await handfast.shielded(_end(*tmux), timeout=5)


async def _shown(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Extract the window's output from the control-mode protocol."""
    async for line in lines:
        if output := _OUTPUT.fullmatch(line):
            yield _ESCAPED.sub(lambda each: bytes([int(each[1], 8)]), output[1])


async def _end(*tmux: str) -> None:
    async with handfast.Process(*tmux, "kill-server") as ending:
        await ending.wait()
