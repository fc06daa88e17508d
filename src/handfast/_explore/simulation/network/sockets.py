"""A simulated socket: the calls that asyncio makes on a socket, with the results and error codes of
Linux on loopback.

A call takes effect at once, as between two sockets of one machine. When the other side is notified
is up to `Readiness`, and how many bytes one read returns is a choice made here.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from handfast._explore.simulation.network.selector import Readiness

if TYPE_CHECKING:
    import asyncio

    from handfast._explore.simulation.network.kernel import Kernel
    from handfast._origin import Origin


# What one direction of a connection holds before the writer has to wait.
_CAPACITY = 64 * 1024
# SO_LINGER with a time-out of 0: close() sends a reset.
_AT_ONCE = struct.pack("ii", 1, 0)


class ReceiveBuffer:
    """The bytes on their way to one socket, in order, with the boundaries of the writes. `ended`:
    nothing follows.

    How many of them one read returns is a choice. Only cuts that matter are offered, and no piece
    is cut twice, which keeps the number of schedules small.
    """

    __slots__ = ("_pieces", "ended", "size")

    def __init__(self) -> None:
        # Each piece with whether it may still be cut: a write is cut into two pieces at most.
        self._pieces: deque[tuple[bytes, bool]] = deque()
        self.size = 0
        self.ended = False

    def add(self, data: bytes) -> None:
        """Add one write. It is lost after the end of the stream."""
        if not self.ended:
            self._pieces.append((data, True))
            self.size += len(data)

    def lose(self) -> None:
        """Lose everything on its way, including the end of the stream."""
        self._pieces.clear()
        self.size = 0
        self.ended = False

    def cuts(self, limit: int) -> list[int]:
        """How many bytes one read of at most `limit` may return: all, the first write, all but the
        last write, the first byte, all but the last byte."""
        whole = min(self.size, limit)
        first, first_fresh = self._pieces[0]
        last, last_fresh = self._pieces[-1]
        # Boundaries of writes find protocols that rely on one read per write; one byte less or one
        # byte alone finds parsers that rely on whole messages.
        cuts = [len(first), self.size - len(last)]
        if first_fresh:
            cuts.append(1)
        if last_fresh:
            cuts.append(self.size - 1)
        return list(dict.fromkeys([whole, *(cut for cut in cuts if 0 < cut < whole)]))

    def take(self, count: int) -> bytes:
        """The first `count` bytes."""
        self.size -= count
        taken = []
        while count:
            data, _ = self._pieces.popleft()
            if len(data) > count:
                self._pieces.appendleft((data[count:], False))
                data = data[:count]
            taken.append(data)
            count -= len(data)
        return b"".join(taken)


class FakeSocket:
    """Takes the place of a `socket.socket`. Created by `Kernel`."""

    def __init__(self, kernel: Kernel, fd: int, family: int, proto: int, name: str) -> None:
        self.kernel = kernel
        self.family = family
        self.type = socket.SOCK_STREAM
        self.proto = proto
        # The side and number of the connection: the same in every run.
        self.name = name
        self.local: Any = "" if family == kernel.unix else kernel.resolver.unbound(family)
        self.peer: FakeSocket | None = None
        self.received = ReceiveBuffer()
        self.waiting: deque[FakeSocket] = deque()
        self.listening = False
        self.closed = False
        # Where the program created it; an accepted socket has the line of its server.
        self.origin: Origin | None = None
        # Whether the program has received the server. A cancel inside `create_server` loses it
        # before that: it listens forever, and the program cannot close it.
        self.handed_over = False
        # Whether its path is removed when it is closed.
        self.unlinks_path = False
        # The socket object of the program, if it created one.
        self.real: socket.socket | None = None
        self._fd = fd
        self._remote: Any = None
        self._error = 0
        self._connecting = False
        # Shut down for writing; shut down for reading; reset by the other side.
        self._write_shut = False
        self._read_shut = False
        self._gone = False
        self._options: dict[tuple[int, int], Any] = {}
        self._read = Readiness(kernel.loop.channel(f"to {name}"), kernel.loop._ready)
        self._write = Readiness(kernel.loop.channel(f"from {name}"), kernel.loop._ready)

    def __repr__(self) -> str:
        return f"<simulated socket, {self.name}, {self.local!r}>"

    # --- attributes -------------------------------------------------------------------------

    def fileno(self) -> int:
        return -1 if self.closed else self._fd

    def getsockname(self) -> Any:
        self._check_open()
        return self.local

    def getpeername(self) -> Any:
        if self._remote is None:
            raise _error(errno.ENOTCONN)
        return self._remote

    def setsockopt(self, level: int, option: int, value: Any, size: int = 0) -> None:
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int, size: int = 0) -> Any:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR):
            # Reading SO_ERROR ends a connect: asyncio does it when the socket becomes writable.
            self._connecting = False
            # Reading the error clears it, as in Linux.
            code, self._error = self._error, 0
            return code
        return self._options.get((level, option), bytes(size) if size else 0)

    def setblocking(self, flag: bool) -> None:
        """Does nothing: a simulated socket never blocks."""

    def settimeout(self, timeout: float | None) -> None:
        """Does nothing: a simulated socket never blocks."""

    def gettimeout(self) -> float:
        return 0.0

    def get_inheritable(self) -> bool:
        return False

    # --- connections --------------------------------------------------------------------------

    def bind(self, address: Any) -> None:
        self.kernel.bind(self, address)

    def listen(self, backlog: int = 0) -> None:
        self.listening = True

    def accept(self) -> tuple[FakeSocket, Any]:
        self._check_open()
        self._read.handled()
        if not self.listening:
            raise _error(errno.EINVAL)
        if not self.waiting:
            raise _error(errno.EAGAIN)
        accepted = self.waiting.popleft()
        self.refresh()
        return accepted, accepted._remote

    def connect(self, address: Any) -> None:
        self._check_open()
        code = self.kernel.connect(self, address)
        if self._local:  # on Linux this is complete when the call returns
            if code:
                raise _error(code)
            return
        self._error = code
        self._connecting = True
        raise _error(errno.EINPROGRESS)

    def join(self, peer: FakeSocket, remote: Any) -> None:
        """Connect two sockets."""
        self.peer = peer
        self._remote = remote

    # --- bytes --------------------------------------------------------------------------------

    def send(self, data: Any, flags: int = 0) -> int:
        self._check_open()
        self._write.handled()
        peer = self.peer
        if peer is None:
            raise _error(errno.ENOTCONN)
        # A Unix socket reports a pending reset to the reader only; a writer gets EPIPE.
        if self._error and not self._local:
            raise self._failure()
        if self._write_shut or self._gone:
            raise _error(errno.EPIPE)
        data = memoryview(data).cast("B")
        if peer.closed or peer._read_shut:
            if self._local:
                raise _error(errno.EPIPE)
            if peer.closed or peer._write_shut:
                # With TCP only the answer to this write is a reset. The end of file came before.
                self._gone = True
                peer.reset()
                return len(data)
        sent = min(len(data), _CAPACITY - peer.received.size)
        if not sent:
            raise _error(errno.EAGAIN)
        peer.received.add(bytes(data[:sent]))
        peer.refresh()
        self.refresh()
        return sent

    def sendmsg(self, buffers: Iterable[Any]) -> int:
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._check_open()
        self._read.handled()
        received = self.received
        if received.size:
            data = received.take(self._read_size(received.cuts(size)))
            assert self.peer is not None
            self.peer.refresh()  # it can write again
        elif self._error:
            raise self._failure()
        elif received.ended or self._read_shut:
            data = b""
        else:
            raise _error(errno.EAGAIN if self.peer else errno.ENOTCONN)
        self.refresh()
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(size or len(view))
        view[: len(data)] = data
        return len(data)

    def _read_size(self, cuts: list[int]) -> int:
        """How many of the bytes on their way have arrived when the program reads."""
        if len(cuts) == 1:
            return cuts[0]
        answer: int = self.kernel.loop.choose(
            "chunk",
            len(cuts),
            lambda: [("chunk", self.name, at) for at in range(len(cuts))],
            lambda n: f"only {cuts[n]} of {cuts[0]} bytes have arrived at {self.name}",
        )
        return cuts[answer]

    # --- the end ------------------------------------------------------------------------------

    def shutdown(self, how: int) -> None:
        self._check_open()
        peer = self.peer
        over = self._gone or (self._write_shut and peer is not None and peer._has_ended())
        if peer is None or (over and not self._local):
            raise _error(errno.ENOTCONN)
        if how != socket.SHUT_RD:
            self._write_shut = True
            peer.end()
        if how != socket.SHUT_WR:
            self._read_shut = True
            self.refresh()

    def close(self) -> None:
        if self.closed:
            return
        self.watch(None, None)
        self.closed = True
        self.kernel.forget(self, self._fd)
        for connection in self.waiting:  # never accepted
            connection._abort()
        if self.peer is not None:
            linger = self._options.get((socket.SOL_SOCKET, socket.SO_LINGER))
            self._end_peer(reset=bool(self.received.size) or linger == _AT_ONCE)
        if self.real is not None:
            self.real.close()

    def _abort(self) -> None:
        self.closed = True
        self.kernel.forget(self, self._fd)
        self._end_peer(reset=True)

    def _end_peer(self, *, reset: bool) -> None:
        """End the stream of the other side. Closing with unread bytes resets the connection."""
        assert self.peer is not None
        if not self.peer.closed:
            if reset:
                self.peer.reset()
            else:
                self.peer.end()

    def end(self) -> None:
        """End of file after the bytes that are on their way."""
        self.received.ended = True
        self.refresh()

    def reset(self) -> None:
        """An error after the bytes that are on their way. Over TCP, a side that has had its end of
        file notices a reset only when it writes."""
        self._gone = True
        if self._local or not self.received.ended:
            self._error = errno.ECONNRESET
        self.end()

    def dropped(self) -> None:
        """The transport was garbage-collected without being closed."""
        if self.peer is not None and not self.peer.closed:
            self.kernel.dropped.append(self)

    # --- faults -------------------------------------------------------------------------------

    def _lose_connection(self) -> None:
        """Fault: a reset for both sides instead of the bytes on their way."""
        self.received.lose()
        self._read.arrive()
        self.reset()
        if self.peer is not None and not self.peer.closed:
            self.peer.reset()

    def _lose_the_rest(self) -> None:
        """Fault: the end of the stream instead of the bytes on their way. What follows is lost."""
        self.received.lose()
        self._read.arrive()
        self.end()

    # --- readiness ----------------------------------------------------------------------------

    def watch(self, reader: asyncio.Handle | None, writer: asyncio.Handle | None) -> None:
        """Register the handles to run when this can be read, and written."""
        self._read.watch(reader)
        self._write.watch(writer)
        self.refresh()

    def refresh(self) -> None:
        """Update the events for the registered handles."""
        if self._read.handle is not None:
            if self.peer is None:
                self._read.update(bool(self.waiting), f"a connection for {self.name}")
            else:
                self._refresh_stream()
        if self._write.handle is not None:
            label = "the answer to" if self._connecting else "free buffer space for"
            self._write.update(self._writable(), f"{label} {self.name}")

    def _refresh_stream(self) -> None:
        if self.received.size:
            # A fault replaces an event that arrives, so each one costs no additional choice point.
            faults = {"reset": self._lose_connection, "eof": self._lose_the_rest}
            self._read.update(True, f"bytes for {self.name}", faults)
        elif self._error:
            self._read.update(True, f"a reset for {self.name}")
        else:
            label = f"the end of the stream for {self.name}"
            ended = self.received.ended or self._read_shut
            self._read.update(ended, label, {"reset": self._lose_connection})

    def _writable(self) -> bool:
        peer = self.peer
        # Writable also after an error: the write then raises it.
        if peer is None or peer.closed or self._connecting or self._write_shut or self._gone:
            return True
        return peer.received.size < _CAPACITY

    def _has_ended(self) -> bool:
        return self.closed or self._write_shut

    @property
    def _local(self) -> bool:
        """Whether this is a Unix socket, which differs from TCP in some error cases."""
        return self.family == self.kernel.unix

    # --- errors -------------------------------------------------------------------------------

    def _failure(self) -> OSError:
        code, self._error = self._error, 0
        return _error(code)

    def _check_open(self) -> None:
        if self.closed:
            raise _error(errno.EBADF)


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
