"""A socket of the kernel in memory: the calls that asyncio makes on one, answered as Linux answers
them on loopback, error codes alike.

A call takes effect at once, as it does between two sockets of one machine. What takes time is that
anybody hears of it; that is the business of `Readiness`, and how much one read sees is chosen here.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.explore.twins.network.inbox import Inbox
from holdfast.explore.twins.network.readiness import Readiness

if TYPE_CHECKING:
    import asyncio

    from holdfast.explore.twins.network.kernel import Kernel
    from holdfast.origin import Origin

__all__ = ["TwinSocket"]

# What one direction of a connection holds before the writer has to wait.
_ROOM = 64 * 1024
_AT_ONCE = struct.pack("ii", 1, 0)


class TwinSocket:
    """Stands for a `socket.socket`. Made by the kernel, which knows its number."""

    def __init__(self, kernel: Kernel, fd: int, family: int, proto: int, name: str) -> None:
        self.kernel = kernel
        self.family = family
        self.type = socket.SOCK_STREAM
        self.proto = proto
        # Whose side of which connection this is, in words that are the same in every run.
        self.name = name
        self.local: Any = "" if family == kernel.unix else kernel.names.nowhere(family)
        self.peer: TwinSocket | None = None
        self.inbox = Inbox()
        self.waiting: deque[TwinSocket] = deque()
        self.listening = False
        self.closed = False
        # Where the program made it; an accepted one has the line of its server.
        self.origin: Origin | None = None
        # Whether the program has got hold of what listens here. A cancel can come before, in
        # `create_server` itself: then it listens for ever, and nobody can help it.
        self.handed_over = False
        # Whether its path goes with it.
        self.fleeting = False
        # The program's own socket object, if it brought one.
        self.real: socket.socket | None = None
        self._fd = fd
        self._remote: Any = None
        self._error = 0
        self._connecting = False
        # No more is sent from here, by its own wish; no more is wanted here; the other side has
        # answered that there is no such connection.
        self._finished = False
        self._deaf = False
        self._gone = False
        self._options: dict[tuple[int, int], Any] = {}
        self._read = Readiness(kernel.loop.channel(f"to {name}"), kernel.loop._ready)
        self._write = Readiness(kernel.loop.channel(f"from {name}"), kernel.loop._ready)

    def __repr__(self) -> str:
        return f"<twin of a socket, {self.name}, {self.local!r}>"

    # --- what a program may ask of any socket -----------------------------------------------

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
            self._connecting = False
            code, self._error = self._error, 0
            return code
        return self._options.get((level, option), bytes(size) if size else 0)

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def settimeout(self, timeout: float | None) -> None:
        """It never blocks."""

    def gettimeout(self) -> float:
        return 0.0

    def get_inheritable(self) -> bool:
        return False

    # --- becoming one of two ------------------------------------------------------------------

    def bind(self, address: Any) -> None:
        self.kernel.bind(self, address)

    def listen(self, backlog: int = 0) -> None:
        self.listening = True

    def accept(self) -> tuple[TwinSocket, Any]:
        self._check_open()
        self._read.looked()
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
        if self._local:  # over before the call returns, on Linux
            if code:
                raise _error(code)
            return
        self._error = code
        self._connecting = True
        raise _error(errno.EINPROGRESS)

    def join(self, peer: TwinSocket, remote: Any) -> None:
        """From now on the two are one connection."""
        self.peer = peer
        self._remote = remote

    # --- bytes --------------------------------------------------------------------------------

    def send(self, data: Any, flags: int = 0) -> int:
        self._check_open()
        self._write.looked()
        peer = self.peer
        if peer is None:
            raise _error(errno.ENOTCONN)
        if self._error and not self._local:
            raise self._failure()
        if self._finished or self._gone:
            raise _error(errno.EPIPE)
        data = memoryview(data).cast("B")
        if peer.closed or peer._deaf:
            if self._local:
                raise _error(errno.EPIPE)
            if peer.closed or peer._finished:
                # TCP hears of it only by the answer to this. The end of file has come before.
                self._gone = True
                peer.reset()
                return len(data)
        sent = min(len(data), _ROOM - peer.inbox.size)
        if not sent:
            raise _error(errno.EAGAIN)
        peer.inbox.add(bytes(data[:sent]))
        peer.refresh()
        self.refresh()
        return sent

    def sendmsg(self, buffers: Iterable[Any]) -> int:
        return self.send(b"".join(buffers))

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._check_open()
        self._read.looked()
        inbox = self.inbox
        if inbox.size:
            data = inbox.take(self._seen(inbox.cuts(size)))
            assert self.peer is not None
            self.peer.refresh()  # there is room again
        elif self._error:
            raise self._failure()
        elif inbox.ended or self._deaf:
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

    def _seen(self, cuts: list[int]) -> int:
        """How much of what is on its way has come when the program reads."""
        if len(cuts) == 1:
            return cuts[0]
        answer: int = self.kernel.loop.choose(
            "chunk",
            len(cuts),
            lambda: [("chunk", self.name, at) for at in range(len(cuts))],
            lambda n: f"only {cuts[n]} of {cuts[0]} bytes have come to {self.name}",
        )
        return cuts[answer]

    # --- the end ------------------------------------------------------------------------------

    def shutdown(self, how: int) -> None:
        self._check_open()
        peer = self.peer
        over = self._gone or (self._finished and peer is not None and peer._said_end())
        if peer is None or (over and not self._local):
            raise _error(errno.ENOTCONN)
        if how != socket.SHUT_RD:
            self._finished = True
            peer.end()
        if how != socket.SHUT_WR:
            self._deaf = True
            self.refresh()

    def close(self) -> None:
        if self.closed:
            return
        self.watch(None, None)
        self.closed = True
        self.kernel.forget(self, self._fd)
        for connection in self.waiting:  # nobody will ever accept these
            connection._close(rudely=True)
        if self.peer is not None:
            linger = self._options.get((socket.SOL_SOCKET, socket.SO_LINGER))
            self._say_goodbye(rudely=bool(self.inbox.size) or linger == _AT_ONCE)
        if self.real is not None:
            self.real.close()

    def _close(self, *, rudely: bool) -> None:
        self.closed = True
        self.kernel.forget(self, self._fd)
        self._say_goodbye(rudely=rudely)

    def _say_goodbye(self, *, rudely: bool) -> None:
        """Whoever closes without having read everything resets the connection."""
        assert self.peer is not None
        if not self.peer.closed:
            if rudely:
                self.peer.reset()
            else:
                self.peer.end()

    def end(self) -> None:
        """Nothing more will come: end of file after the bytes that are on their way."""
        self.inbox.ended = True
        self.refresh()

    def reset(self) -> None:
        """The connection is gone: an error after the bytes that are on their way. Over TCP, a
        side that has had its end of file hears of it only when it writes."""
        self._gone = True
        if self._local or not self.inbox.ended:
            self._error = errno.ECONNRESET
        self.end()

    def dropped(self) -> None:
        """The program has let go of the transport without closing it."""
        if self.peer is not None and not self.peer.closed:
            self.kernel.dropped.append(self)

    # --- faults -------------------------------------------------------------------------------

    def _lose_connection(self) -> None:
        """Instead of what was on its way: a reset, for both sides."""
        self.inbox.lose()
        self._read.arrive()
        self.reset()
        if self.peer is not None and not self.peer.closed:
            self.peer.reset()

    def _lose_the_rest(self) -> None:
        """Instead of what was on its way: the end of the stream. What follows is lost."""
        self.inbox.lose()
        self._read.arrive()
        self.end()

    # --- who is told --------------------------------------------------------------------------

    def watch(self, reader: asyncio.Handle | None, writer: asyncio.Handle | None) -> None:
        """Who wants to know when this can be read, and written."""
        self._read.watch(reader)
        self._write.watch(writer)
        self.refresh()

    def refresh(self) -> None:
        """Something may have changed for those who watch."""
        if self._read.handle is not None:
            if self.peer is None:
                self._read.update(bool(self.waiting), f"a connection for {self.name}")
            else:
                self._refresh_stream()
        if self._write.handle is not None:
            label = "the answer to" if self._connecting else "room for"
            self._write.update(self._writable(), f"{label} {self.name}")

    def _refresh_stream(self) -> None:
        if self.inbox.size:
            faults = {"reset": self._lose_connection, "eof": self._lose_the_rest}
            self._read.update(True, f"bytes for {self.name}", faults)
        elif self._error:
            self._read.update(True, f"a reset for {self.name}")
        else:
            label = f"the end of the stream for {self.name}"
            ended = self.inbox.ended or self._deaf
            self._read.update(ended, label, {"reset": self._lose_connection})

    def _writable(self) -> bool:
        peer = self.peer
        if peer is None or peer.closed or self._connecting or self._finished or self._gone:
            return True
        return peer.inbox.size < _ROOM

    def _said_end(self) -> bool:
        return self.closed or self._finished

    @property
    def _local(self) -> bool:
        """Whether this is a socket of the file system; what differs from TCP hangs on it."""
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
