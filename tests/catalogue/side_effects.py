"""A child process that reports whether it is alive, and whose end is an event.

It holds one end of a named pipe for as long as it lives. On a signal it answers through
the pipe; when it is gone the pipe ends. Either comes soon, so nobody has to wait and guess.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shlex
import signal
import sys
import tempfile
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import AsyncIterator
from pathlib import Path

__all__ = ["Witness", "children_reaped", "witness"]

PROGRAM = """
import os, signal, sys
pipe = os.open(sys.argv[1], os.O_WRONLY)
signal.signal(signal.SIGUSR1, lambda *_: os.write(pipe, b"alive\\n"))
os.write(pipe, b"%d\\n" % os.getpid())
while True:
    signal.pause()
"""


class Witness:
    """The near end: what to start, and what it has said."""

    def __init__(self, path: Path, reader: asyncio.StreamReader) -> None:
        self.command = (sys.executable, "-I", "-S", "-c", PROGRAM, str(path))
        self._reader = reader
        # Without any writer the pipe would end before the witness is up.
        self._placeholder: int | None = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        self._pid = 0

    @property
    def script(self) -> str:
        """The same for a shell, which starts it as a child of its own."""
        return f"{shlex.join(self.command)} & wait"

    async def up(self) -> None:
        """Wait until it runs."""
        self._pid = int(await self._reader.readline())
        self._let_go()

    async def alive(self) -> bool:
        """Ask. A process that has been killed ends before it can answer."""
        self._signal(signal.SIGUSR1)
        return await self._reader.readline() == b"alive\n"

    async def end(self) -> None:
        """Make sure that it is gone."""
        self._let_go()
        self._signal(signal.SIGKILL)
        await self._reader.read()

    def _signal(self, number: signal.Signals) -> None:
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def _let_go(self) -> None:
        if self._placeholder is not None:
            os.close(self._placeholder)
            self._placeholder = None


@contextlib.asynccontextmanager
async def witness() -> AsyncIterator[Witness]:
    """A witness that is not started yet, and is gone and reaped at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipe"
        os.mkfifo(path)
        near = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", 0)
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), near
        )
        seen = Witness(path, reader)
        try:
            yield seen
        finally:
            await seen.end()
            transport.close()
            await children_reaped()


async def children_reaped(*, kill: bool = False) -> None:
    """Wait until asyncio is through with every child that was started on this loop."""
    loop = asyncio.get_running_loop()
    for thing in gc.get_objects():
        if isinstance(thing, BaseSubprocessTransport) and thing._loop is loop:
            if kill and thing.get_returncode() is None:
                thing.kill()
            await thing._wait()
