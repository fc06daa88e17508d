"""One output pipe of a child: what is kept of it, and how it is read.

A pipe is always drained as bytes, whoever listens, so that the child never blocks on an output that
nobody reads. Nothing here knows of processes or signals; that is `child.py`. It keeps S1.1.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from holdfast.origin import Origin
from holdfast.runtime.output_record import GAP, Record

__all__ = ["Chunks", "Lines", "Pipe"]

# An iterator may fall behind by this much before the child has to wait for it.
HIGH_WATER = 64 * 1024
LOW_WATER = HIGH_WATER // 2

# For so long after the start a pipe behaves as if it were being read, so that whoever begins to read
# at once gets all of it. A child that nobody reads waits for no longer than this.
HEAD_START = 0.05

# What an iterator may leave unread for the next one: the high water, and what was read before the
# pause took effect, which on uvloop may be ten times that. Without a bound, leaving and coming back
# again and again would heap it up.
LEFTOVER = 64 * HIGH_WATER


class Pipe:
    r"""What a child writes to its standard output or error.

    `head` and `tail` are the first and the last bytes written, at most `keep` in all, and `dropped` is
    the number of bytes between them: `len(head) + dropped + len(tail)` is all that was ever written.
    A short output is all in `head`. They are a record, not a buffer: reading the pipe takes nothing
    out of them. `str(pipe)` is what an error message wants to show.

    `lines()` and `chunks()` read it as a stream. While one is being read nothing is lost: the child
    waits when its reader falls behind. Reading goes on where the last reader stopped; leaving the loop
    or a cancelled wait stops it. What came while nobody read is there as far as it was kept. There is
    one reader at a time: a second one is an error. Whoever begins within the first 50 milliseconds
    misses nothing.

    >>> import asyncio, holdfast
    >>> async def main():
    ...     async with holdfast.Process("bash", "-c", "seq 1 100000") as process:
    ...         await process.wait()
    ...         await process.close()
    ...     return process.stdout
    >>> output = asyncio.run(main())
    >>> output.head[:6], output.tail[-7:], output.dropped, output.eof
    (b'1\n2\n3\n', b'100000\n', 523359, True)
    """

    __slots__ = (
        "_ended",
        "_eof",
        "_flowing",
        "_head_start",
        "_loop",
        "_name",
        "_paused",
        "_queue",
        "_queued",
        "_reader",
        "_record",
        "_seen",
        "_transport",
        "_waiter",
    )

    def __init__(self, name: str, keep: int) -> None:
        self._name = name
        self._record = Record(keep)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._head_start: asyncio.TimerHandle | None = None
        self._eof = False
        self._ended = False
        # What the reader has still to get, and up to which byte of the output that goes.
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._seen = 0
        # The reader is known by its place of birth only: a reference to it would keep it alive,
        # and a reader that was dropped has to let go of the pipe.
        self._reader: tuple[object, Origin] | None = None
        self._waiter: asyncio.Future[None] | None = None
        # False once the pipe may wait for no reader any more: closing has begun.
        self._flowing = True
        self._paused = False

    # What a person reads afterwards.

    @property
    def head(self) -> bytes:
        """The first bytes that were written."""
        return bytes(self._record.head)

    @property
    def tail(self) -> bytes:
        """The last bytes that were written, without those in `head`."""
        return bytes(self._record.tail)

    @property
    def dropped(self) -> int:
        """How many bytes lie between `head` and `tail`."""
        return self._record.dropped

    @property
    def eof(self) -> bool:
        """True once the end was read. It stays False if the pipe had to be abandoned."""
        return self._eof

    def __str__(self) -> str:
        """What is kept of it, as text for people."""
        if not self.dropped:
            return (self.head + self.tail).decode(errors="replace")
        head, tail = (part.decode(errors="replace") for part in (self.head, self.tail))
        return f"{head}\n[{self.dropped} bytes not kept]\n{tail}"

    def __repr__(self) -> str:
        state = "eof" if self._eof else "abandoned" if self._ended else "open"
        return f"<{self._name} {state}, {self._record.total} bytes, {self.dropped} not kept>"

    # What a reader calls.

    def lines(self, limit: int = 64 * 1024) -> Lines:
        r"""Iterate over the lines, as bytes, each with its newline.

        A line longer than `limit` comes in pieces of `limit` bytes, of which only the last ends in a
        newline. Nothing is lost and memory stays bounded, whatever the child writes.
        """
        if limit < 1:
            raise ValueError(f"limit must be at least 1 byte, not {limit}")
        return Lines(self, Origin.here(1), limit)

    def chunks(self) -> Chunks:
        """Iterate over the output as it comes, in pieces of any size."""
        return Chunks(self, Origin.here(1))

    def _attach(self, token: object, origin: Origin) -> None:
        if self._reader is not None and self._reader[0] is not token:
            raise RuntimeError(
                f"{self._name} is already being read by an iterator born at {self._reader[1]}, so the "
                f"one born at {origin} would get only a part; leave or aclose() the first one"
            )
        if self._waiter is not None:
            raise RuntimeError(f"another task is already waiting for {self._name}")
        if self._loop is None and not self._ended:
            raise RuntimeError(f"{self._name} cannot be read yet: the process has not been started")
        if self._reader is None:
            self._reader = (token, origin)
            self._cancel_head_start()
            self._catch_up()
            self._pace()

    def _detach(self, token: object, unread: bytes) -> None:
        if self._reader is None or self._reader[0] is not token:
            return
        self._reader = None
        if unread:
            self._queue.appendleft(unread)
            self._queued += len(unread)
        self._trim()
        self._resume()

    async def _next(self) -> bytes | None:
        """The next bytes, GAP where some are missing, None at the end."""
        while True:
            if not self._queue:
                self._catch_up()
            if self._queue:
                data = self._queue.popleft()
                self._queued -= len(data)
                if self._queued <= LOW_WATER:
                    self._resume()
                return data
            if self._ended:
                return None
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    # What the child's protocol calls, on the loop's thread.

    def open(self, transport: asyncio.ReadTransport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head_start = loop.call_later(HEAD_START, self.end_head_start)

    def end_head_start(self) -> None:
        """Nobody has come: from here on the pipe waits for nobody, and the record is what is kept."""
        self._cancel_head_start()
        self._queue.clear()
        self._queued = self._seen = 0
        self._resume()

    def feed(self, data: bytes) -> None:
        self._record.add(data)
        if (self._reader is not None or self._head_start is not None) and self._flowing:
            self._queue.append(data)
            self._queued += len(data)
            self._seen += len(data)
            self._pace()
        self._wake()

    def release(self) -> None:
        """Closing has begun: the child waits for no reader any more. A reader gets what is kept."""
        self._flowing = False
        self._cancel_head_start()
        self._resume()

    def end(self, *, eof: bool) -> None:
        """EOF, or the pipe is given up. What comes first counts."""
        if not self._ended:
            self._ended = True
            self._eof = eof
            self._transport = None
            self._wake()

    @property
    def ended(self) -> bool:
        return self._ended

    # Inside. The queue always ends at the byte `_seen` of the output.

    def _catch_up(self) -> None:
        """Queue what came while nobody was reading, or while closing, as far as it is kept."""
        for data in self._record.since(self._seen):
            self._queue.append(data)
            self._queued += len(data)
        self._seen = self._record.total

    def _cancel_head_start(self) -> None:
        if self._head_start is not None:
            self._head_start.cancel()
            self._head_start = None

    def _trim(self) -> None:
        """Give back to the record what is too much to leave for the next reader."""
        at_gap = False
        while self._queued > LEFTOVER:
            data = self._queue.pop()
            self._queued -= len(data)
            at_gap = at_gap or data == GAP
            if not at_gap:
                self._seen -= len(data)
        if at_gap:
            self._queue.append(GAP)

    def _pace(self) -> None:
        if self._paused or not self._flowing or self._queued < HIGH_WATER:
            return
        if self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            if self._transport is not None:
                self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Chunks(AsyncIterator[bytes]):
    """The output of a pipe as it comes. Made by `Pipe.chunks()`.

    An object and not an async generator: a generator that is left in the middle would be finalised
    later, in another task (#88684), and hold the pipe until then.
    """

    __slots__ = ("_closed", "_origin", "_pipe", "_token")

    def __init__(self, pipe: Pipe, origin: Origin) -> None:
        self._pipe = pipe
        self._origin = origin
        self._token = object()
        self._closed = False

    async def __anext__(self) -> bytes:
        while (data := await self._next()) == GAP:
            pass
        if data is None:
            self._let_go()
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Let go of the pipe, which another iterator may then read on."""
        self._let_go()

    async def _next(self) -> bytes | None:
        if self._closed:
            return None
        self._pipe._attach(self._token, self._origin)
        try:
            return await self._pipe._next()
        except BaseException:
            # Cancelled. The error refers to this frame, and whoever keeps it, or the task, keeps this
            # iterator; the child may not have to wait for that. It can be read on all the same.
            self._pipe._detach(self._token, self._unread())
            raise

    def _unread(self) -> bytes:
        return b""

    def _let_go(self) -> None:
        self._closed = True
        self._pipe._detach(self._token, self._unread())

    def __del__(self) -> None:
        # `break` ends here, at once and on the loop's thread. A cycle may be collected on any
        # thread, and then the transport must not be touched from here.
        loop = self._pipe._loop
        if loop is None or asyncio._get_running_loop() is loop:
            self._let_go()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(self._pipe._detach, self._token, self._unread())


class Lines(Chunks):
    """The lines of a pipe. Made by `Pipe.lines()`."""

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
            data = await self._next()
            if data:
                self._buffer += data
            elif self._buffer:
                return self._cut(len(self._buffer))
            elif data is None:
                self._let_go()
                raise StopAsyncIteration

    def _cut(self, size: int) -> bytes:
        line = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return line

    def _unread(self) -> bytes:
        unread = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        return unread
