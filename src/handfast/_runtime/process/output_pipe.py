"""One output pipe of a child: what is kept of it, and when the child waits for its reader.

Everything that arrives is recorded (`head`, `tail`) and queued for the reader. There are two ways to
bound the queue, and the creator of the process chooses one for each pipe:

    pipe    the child waits: while the queue is long, the pipe is not read.
    keep    the child never waits without a reader: once the queue is long, output is only recorded.
            A reader gets the queue, then `OutputDropped`, then the recorded tail. This begins when
            the program has had a turn to start a reader: until then the child waits.

Once closing has begun, both behave like `keep`: a child that blocks on a full pipe could not end.
The iterators are in `output_readers.py`, processes and signals in `child.py`. It keeps S1.1 and A2.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable
from typing import cast

from handfast._origin import Origin
from handfast._runtime.arguments import whole_number
from handfast._runtime.errors import OutputDropped
from handfast._runtime.process.output_buffer import JOINED, OutputBuffer
from handfast._runtime.process.output_readers import Chunks, Lines

# The child waits for its reader while so many bytes are queued, until so few are left.
HIGH_WATER = 256 * 1024
LOW_WATER = HIGH_WATER // 4
# If the child does not wait: so many unread bytes are queued, then output is only recorded. It is
# more than a pipe of the kernel holds, so that what a child leaves in its pipe at its end is not lost.
UNREAD = 1024 * 1024
# A pipe with much output is made larger, where the system can: the fewer turns a child and its reader
# take, the faster both are (`python -m benchmarks.compare process`). Not each pipe, because a user may
# have 64 MB in all. This is the size of one read of asyncio, and less than UNREAD.
PIPE_SIZE = 256 * 1024


class Pipe:
    r"""The standard output or error of a child.

    `lines()` and `chunks()` read it as a stream, from the first byte on, whenever they start. A new
    reader continues where the last one stopped; leaving the loop or a cancelled wait stops a reader.
    There is one reader at a time: a second one is an error.

    With `"pipe"` (the default for stdout) the child waits while 256 KB are unread, and nothing is
    lost. With `"keep"` (the default for stderr) the child waits only while there is a reader.
    Without one, the pipe is drained, and after 1 MB of unread output only the last bytes are kept.
    That begins one turn of the loop after the start: a reader that is started at once gets every byte.
    Reading then raises `OutputDropped` where bytes are missing, and a later read continues after
    them. `lines()` leaves out the two lines that are cut there.

    `head` and `tail` are the first and the last bytes written, at most `keep` in all; a short output
    is in both. `dropped` is the number of bytes in neither. Reading removes nothing from them.
    `str(pipe)` is text for error messages.

    >>> import asyncio, handfast
    >>> async def main():
    ...     async with handfast.Process("bash", "-c", "seq 1 100000 >&2") as process:
    ...         await process.wait()
    ...     return process.stderr
    >>> output = asyncio.run(main())
    >>> output.head[:6], output.tail[-7:], output.dropped, output.eof
    (b'1\n2\n3\n', b'100000\n', 523359, True)
    """

    __slots__ = (
        "_drained",
        "_ended",
        "_eof",
        "_grow_at",
        "_limit",
        "_loop",
        "_name",
        "_on_stall",
        "_paused",
        "_queue",
        "_queued",
        "_reader",
        "_record",
        "_released",
        "_seen",
        "_torn",
        "_transport",
        "_waiter",
        "_word",
    )

    def __init__(self, name: str, word: str, keep: int, *, limit: float = UNREAD) -> None:
        self._name = name
        self._word = word
        self._record = OutputBuffer(keep)
        self._limit = limit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._on_stall: Callable[[], None] | None = None
        # The size of the output from which on the pipe is larger.
        self._grow_at: float = UNREAD
        self._eof = False
        self._ended = False
        # What the reader has not got yet, its size, and the offset in the output where it ends.
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._seen = 0
        # Whether the next byte of the queue follows a gap, so that it is not the start of a line.
        self._torn = False
        # A token and the origin of the reader. A reference to the reader would keep it alive, and
        # a reader that was dropped has to release the pipe.
        self._reader: tuple[object, Origin] | None = None
        self._waiter: asyncio.Future[None] | None = None
        # Whether a "keep" pipe is drained without a reader.
        self._drained = False
        # True once closing has begun: the child no longer waits for a reader.
        self._released = False
        self._paused = False

    # --- the kept output -------------------------------------------------------------------

    @property
    def head(self) -> bytes:
        """The first bytes that were written."""
        return bytes(self._record.head)

    @property
    def tail(self) -> bytes:
        """The last bytes that were written."""
        return self._record.tail

    @property
    def dropped(self) -> int:
        """How many bytes lie between `head` and `tail`."""
        return self._record.dropped

    @property
    def eof(self) -> bool:
        """Whether the end was read. It stays False if the pipe had to be abandoned."""
        return self._eof

    def __str__(self) -> str:
        """The kept output as text."""
        if not self.dropped:
            return self._record.whole.decode(errors="replace")
        head, tail = (part.decode(errors="replace") for part in (self.head, self.tail))
        return f"{head}\n[{self.dropped} bytes not kept]\n{tail}"

    def __repr__(self) -> str:
        state = "eof" if self._eof else "abandoned" if self._ended else "open"
        if self._word not in ("pipe", "keep"):
            state = self._word
        return f"<{self._name} {state}, {self._record.total} bytes, {self.dropped} not kept>"

    # --- called by readers -----------------------------------------------------------------

    def lines(self, limit: int = 64 * 1024) -> Lines:
        r"""Iterate over the lines, as bytes, each with its newline.

        A line longer than `limit` comes in pieces of `limit` bytes, of which only the last ends in a
        newline. Nothing is lost and memory stays bounded, whatever the child writes.
        """
        whole_number("limit", limit, at_least=1)
        return Lines(self, Origin.here(1), limit)

    def chunks(self) -> Chunks:
        """Iterate over the output as it arrives, in pieces of any size."""
        return Chunks(self, Origin.here(1))

    def _attach(self, token: object, origin: Origin) -> None:
        if self._reader is not None and self._reader[0] is not token:
            raise RuntimeError(
                f"{self._name} is already being read by an iterator created at {self._reader[1]}, so "
                f"the one created at {origin} would get only a part; leave or aclose() the first one"
            )
        if self._waiter is not None:
            raise RuntimeError(f"another task is already waiting for {self._name}")
        if self._word not in ("pipe", "keep"):
            raise RuntimeError(
                f'{self._name} is "{self._word}" and cannot be read; create the process with "pipe"'
            )
        if self._loop is None and not self._ended:
            raise RuntimeError(f"{self._name} cannot be read yet: the process has not been started")
        if self._reader is None:
            self._reader = (token, origin)
            self._pace()

    def _detach(self, token: object, unread: bytes) -> None:
        if self._reader is None or self._reader[0] is not token:
            return
        self._reader = None
        if unread:
            self._queue.appendleft(unread)
            self._queued += len(unread)
        self._pace()
        if self._on_stall is not None and self.stalled:
            self._on_stall()

    def _take(self) -> bytes:
        """The next bytes, empty if there are none now. Raises OutputDropped at a gap, once."""
        if not self._queue and self._seen < self._record.total:
            self._queue_tail()
        if not self._queue:
            return b""
        data = self._queue.popleft()
        self._queued -= len(data)
        if self._paused and self._queued <= LOW_WATER:
            self._pace()
        return data

    def _queue_tail(self) -> None:
        """Continue with the recorded tail, after output that was not queued."""
        missing = self._record.tail_start - self._seen
        data = self._record.tail[max(0, -missing) :]
        if data:
            self._queue.append(data)
            self._queued = len(data)
        self._seen = self._record.total
        if missing > 0:
            self._torn = True
            raise self._gap(missing)  # without a local name: the error refers to this frame

    def _gap(self, missing: int) -> OutputDropped:
        why = "the process was being closed, which does not wait for readers; read it before"
        if self._word == "keep":
            why = 'no one read it, and with "keep" the child does not wait; use "pipe", or read earlier'
        error = OutputDropped(f"{missing} bytes of {self._name} were dropped: {why}")
        error.dropped = missing
        return error

    async def _wait(self) -> None:
        """Wait for more output, or for its end."""
        assert self._loop is not None
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # --- called by the child's protocol, on the loop's thread ------------------------------

    def open(
        self,
        transport: asyncio.BaseTransport | None,
        loop: asyncio.AbstractEventLoop,
        on_stall: Callable[[], None],
    ) -> None:
        self._loop = loop
        if transport is None:  # no pipe: inherited, discarded, or the same as stdout
            self._ended = True
            return
        self._transport = cast(asyncio.ReadTransport, transport)
        self._on_stall = on_stall

    def feed(self, data: bytes) -> None:
        record, size = self._record, len(data)
        if self._seen == record.total and (self._queued < self._limit or self._waits):
            queue = self._queue
            if size < JOINED and queue and len(queue[-1]) < JOINED:
                queue[-1] += data
            else:
                queue.append(data)
            self._queued += size
            self._seen += size
        record.add(data)
        if self._queued >= HIGH_WATER:
            self._pace()
        if record.total >= self._grow_at:
            self._grow()
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _grow(self) -> None:
        self._grow_at = math.inf
        # There is no file on uvloop, whose pipes are large sockets. It stays as it is if it is closed
        # or simulated, if the user has too many, or if the system is not Linux (AttributeError).
        if self._transport and (file := self._transport.get_extra_info("pipe")):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                import fcntl  # not on Windows, where handfast can be imported

                fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, PIPE_SIZE)

    def drain(self) -> None:
        """The program has had a turn to start a reader: with "keep", the child waits for none."""
        self._drained = True
        self._pace()

    def release(self) -> None:
        """Closing has begun: the child no longer waits for a reader."""
        self._released = True
        self._pace()

    def end(self, *, eof: bool) -> None:
        """EOF was read, or the pipe is abandoned. The first call counts."""
        if not self._ended:
            self._ended = True
            self._eof = eof
            self._transport = None
            self._on_stall = None
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    @property
    def name(self) -> str:
        return self._name

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def stalled(self) -> bool:
        """Whether the child has to wait for a reader, and there is none."""
        return self._paused and self._reader is None and not self._ended

    def take_all(self) -> bytes:
        """Everything that is queued, for a pipe without a limit."""
        data = b"".join(self._queue)
        self._queue.clear()
        self._queued = 0
        return data

    # --- pacing ----------------------------------------------------------------------------

    @property
    def _waits(self) -> bool:
        """Whether the child has to wait if the queue is long."""
        return not self._released and (
            self._word == "pipe" or self._reader is not None or not self._drained
        )

    def _pace(self) -> None:
        """Pause or resume reading, according to the length of the queue."""
        if self._transport is None:
            return
        if self._paused:
            if self._queued <= LOW_WATER or not self._waits:
                self._paused = False
                self._transport.resume_reading()
        elif self._queued >= HIGH_WATER and self._waits:
            self._paused = True
            self._transport.pause_reading()
            if self._on_stall is not None and self.stalled:
                self._on_stall()
