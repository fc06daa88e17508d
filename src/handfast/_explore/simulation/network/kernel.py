"""The kernel in memory: the sockets of a run and their addresses.

Descriptors and ports are numbered in order, so they are the same in every run.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from handfast._code_owner import first_program_frame, is_machinery
from handfast._explore.loop import stepping
from handfast._explore.simulation.network.dns import Resolver, socket_address
from handfast._explore.simulation.network.real_sockets import adopt_listener, unseen_listener
from handfast._explore.simulation.network.selector import SocketTable
from handfast._explore.simulation.network.sockets import FakeSocket
from handfast._origin import Origin

# Far from any descriptor that a process has.
_FIRST_FD = 1 << 20
# The first dynamic port (RFC 6335).
_FIRST_PORT = 49152
_ANYWHERE = ("0.0.0.0", "::")


class Kernel:
    """The network of one run."""

    # -1 on systems without Unix sockets; no socket has that family then.
    unix: int = getattr(socket, "AF_UNIX", -1)

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.resolver = Resolver()
        self.table = SocketTable(self)
        self.sockets: dict[int, FakeSocket] = {}
        # The sockets of transports that were garbage-collected while open.
        self.dropped: list[FakeSocket] = []
        # The file system: a path remains when its socket is closed, and then refuses connections.
        self._paths: dict[str, FakeSocket] = {}
        self._bound: list[FakeSocket] = []
        self._created = 0
        self._port = _FIRST_PORT
        self._listeners = 0
        self._connections = 0

    # --- sockets ------------------------------------------------------------------------------

    def client(self, family: int, proto: int = 0) -> FakeSocket:
        self._connections += 1
        sock = self._make(family, proto, f"the client of connection {self._connections}")
        sock.origin = _created_at()
        return sock

    def listener(self, family: int, proto: int = 0) -> FakeSocket:
        self._listeners += 1
        sock = self._make(family, proto, f"server {self._listeners}")
        sock.origin = _created_at()
        return sock

    def _make(self, family: int, proto: int, name: str) -> FakeSocket:
        fd = _FIRST_FD + self._created
        self._created += 1
        sock = self.sockets[fd] = FakeSocket(self, fd, family, proto, name)
        return sock

    def knows(self, fd: int) -> bool:
        """Whether this is, or was, one of our sockets."""
        # Also for a closed one: asyncio removes readers after closing.
        return _FIRST_FD <= fd < _FIRST_FD + self._created

    def forget(self, sock: FakeSocket, fd: int) -> None:
        """The socket is closed."""
        del self.sockets[fd]
        # Accepted and client sockets are not bound.
        if sock in self._bound:
            self._bound.remove(sock)
        if sock.unlinks_path:
            self._unlink(sock)

    def transports(self) -> Iterator[tuple[FakeSocket, Any]]:
        """The sockets that have a transport, with it."""
        for fd, sock in self.sockets.items():
            transport = self.loop._transports.get(fd)
            if transport is not None:
                yield sock, transport

    def close(self) -> None:
        """Release everything after the verdict, without warnings from transports."""
        for _, transport in list(self.transports()):
            # Private attributes, so that `__del__` of the transport neither warns nor touches the socket.
            transport._closing = True
            transport._conn_lost = 1
            transport._sock = None
            tls = getattr(transport.get_protocol(), "_app_transport", None)
            if tls is not None:
                tls._closed = True
        for sock in list(self.sockets.values()):
            if sock.real is not None:
                sock.real.close()
        self.sockets.clear()

    # --- addresses ----------------------------------------------------------------------------

    def bind(self, sock: FakeSocket, address: Any) -> None:
        if sock.family == self.unix:
            # asyncio removes the socket file of an earlier server before it binds.
            self._paths[os.fsdecode(address)] = sock
            sock.local = address
            return
        host, port = address[:2]
        port = port or self._free_port()
        if any(_overlap(sock.family, host, port, other) for other in self._bound):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        sock.local = socket_address(sock.family, host, port)
        self._bound.append(sock)

    def _unlink(self, sock: FakeSocket) -> None:
        path = os.fsdecode(sock.local)
        if self._paths[path] is sock:  # else another server has taken the path over
            del self._paths[path]

    def _free_port(self) -> int:
        taken = {sock.local[1] for sock in self._bound}
        while self._port in taken:
            self._port += 1
        self._port += 1
        return self._port - 1

    # --- connections --------------------------------------------------------------------------

    def connect(self, client: FakeSocket, address: Any) -> int:
        """Connect a socket to the listener at this address; the error code, 0 for success."""
        if client.family == self.unix:
            path = os.fsdecode(address)
            if path not in self._paths:
                return errno.ENOENT
            listener: FakeSocket | None = self._paths[path]
        else:
            listener = self._listener_at(client.family, *address[:2])
            if not client.local[1]:
                # The kernel picks the address of the interface that leads to the peer: on loopback the same.
                client.local = socket_address(client.family, address[0], self._free_port())
        if listener is None or not listener.listening or listener.closed:
            return errno.ECONNREFUSED
        self._join(client, listener, address)
        return 0

    def _listener_at(self, family: int, host: str, port: int) -> FakeSocket | None:
        for sock in self._bound:
            if sock.listening and _overlap(family, host, port, sock):
                return sock
        real = unseen_listener(family, host, port)
        return None if real is None else adopt_listener(self, real)

    def _join(self, client: FakeSocket, listener: FakeSocket, address: Any) -> None:
        name = client.name.replace("client", "server")
        accepted = self._make(client.family, client.proto, name)
        accepted.local = address
        # No line of the program creates it, and the server is what the program can close.
        accepted.origin = listener.origin
        accepted.join(client, client.local)
        client.join(accepted, address)
        listener.waiting.append(accepted)
        listener.refresh()


def _overlap(family: int, host: str, port: int, other: FakeSocket) -> bool:
    """Whether two addresses collide; an unspecified host is every address of this machine."""
    if (other.family, other.local[1]) != (family, port):
        return False
    return host == other.local[0] or host in _ANYWHERE or other.local[0] in _ANYWHERE


def _created_at() -> Origin | None:
    """The innermost line of the program in this step, else of a library that it uses."""
    caller = sys._getframe(1)
    frame = first_program_frame(caller, end=_is_step_runner) or _library_frame(caller)
    return Origin(frame.f_code, frame.f_lasti) if frame is not None else None


def _library_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not _is_step_runner(frame.f_code.co_filename):
        if not is_machinery(frame.f_code.co_filename, "explore"):
            return frame
        frame = frame.f_back
    return None


def _is_step_runner(filename: str) -> bool:
    """Whether a file is the one whose frames run a step. Further out nothing belongs to it."""
    return filename == stepping.__file__
