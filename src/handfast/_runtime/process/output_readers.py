"""The iterators over one output pipe: chunks and lines. The pipe itself is in `output_pipe.py`.

They are no async generators: a generator that is left in the middle would be finalised later, in
another task (#88684), and be attached to the pipe until then.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from handfast._asyncio_internals import running_loop
from handfast._origin import Origin
from handfast._runtime.errors import OutputDropped

if TYPE_CHECKING:
    from handfast._runtime.process.output_pipe import Pipe


class Chunks(AsyncIterator[bytes]):
    """The output of a pipe as it arrives. Created by `Pipe.chunks()`."""

    __slots__ = ("_closed", "_origin", "_pipe", "_token")

    def __init__(self, pipe: Pipe, origin: Origin) -> None:
        self._pipe = pipe
        self._origin = origin
        self._token = object()
        self._closed = False

    async def __anext__(self) -> bytes:
        pipe = self._pipe
        while not self._closed:
            data = self._take()
            if data:
                return data
            if pipe._ended:
                self._release()
                break
            await self._wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Release the pipe: another iterator may continue."""
        self._release()

    # Both may raise: a gap in the output, a cancel. The error refers to the frames of this iterator,
    # and keeping it, or the task, keeps the iterator alive; neither the child nor another reader must
    # wait for that, so the pipe is released. This iterator may still continue.

    def _take(self) -> bytes:
        self._pipe._attach(self._token, self._origin)
        try:
            return self._pipe._take()
        except OutputDropped:
            self._unread()  # the first half of a line whose second half is missing
            self._pipe._detach(self._token, b"")
            raise

    async def _wait(self) -> None:
        try:
            await self._pipe._wait()
        except BaseException:
            self._pipe._detach(self._token, self._unread())
            raise

    def _unread(self) -> bytes:
        return b""

    def _release(self) -> None:
        self._closed = True
        self._pipe._detach(self._token, self._unread())

    def __del__(self) -> None:
        # `break` ends here, at once and on the loop's thread. A cycle may be collected on any
        # thread, and then the transport must not be touched from here.
        loop = self._pipe._loop
        if loop is None or running_loop() is loop:
            self._release()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is no reader
                loop.call_soon_threadsafe(self._pipe._detach, self._token, self._unread())


class Lines(Chunks):
    """The lines of a pipe. Created by `Pipe.lines()`."""

    __slots__ = ("_buffer", "_limit", "_searched")

    def __init__(self, pipe: Pipe, origin: Origin, limit: int) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._limit = limit
        super().__init__(pipe, origin)

    async def __anext__(self) -> bytes:
        while True:
            newline = self._buffer.find(b"\n", self._searched, self._limit)
            if newline >= 0:
                return self._cut(newline + 1)
            if len(self._buffer) >= self._limit:
                return self._cut(self._limit)
            self._searched = len(self._buffer)
            if self._closed:
                raise StopAsyncIteration
            if self._fill():
                continue
            if not self._pipe._ended:
                await self._wait()
            elif self._buffer:
                return self._cut(len(self._buffer))
            else:
                self._release()

    def _fill(self) -> bool:
        """Add to the buffer what is there; whether that was anything."""
        data = self._take()
        if not data:
            return False
        if self._pipe._torn:
            # The rest of a line whose beginning is missing.
            end = data.find(b"\n") + 1
            self._pipe._torn = not end
            data = data[end:] if end else b""
        self._buffer += data
        return True

    def _cut(self, size: int) -> bytes:
        with memoryview(self._buffer) as view:
            line = bytes(view[:size])
        del self._buffer[:size]
        self._searched = 0
        return line

    def _unread(self) -> bytes:
        unread = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return unread
