"""The kernel in memory: which sockets there are, and who listens where.

Numbers and ports are handed out in order, so that they are the same in every run.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Any

from holdfast.explore.twins.network.adopting import adopt_listener, unseen_listener
from holdfast.explore.twins.network.birthplace import birthplace
from holdfast.explore.twins.network.names import Names, place
from holdfast.explore.twins.network.selecting import Table
from holdfast.explore.twins.network.sockets import TwinSocket

__all__ = ["Kernel"]

# Far from any descriptor that a process has.
_FIRST_FD = 1 << 20
_FIRST_PORT = 49152
_ANYWHERE = ("0.0.0.0", "::")


class Kernel:
    """The network of one run."""

    # -1 where there is no such thing; no socket is of that family then.
    unix: int = getattr(socket, "AF_UNIX", -1)

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.names = Names()
        self.table = Table(self)
        self.sockets: dict[int, TwinSocket] = {}
        # The sockets of transports that nobody held any more while they were open.
        self.dropped: list[TwinSocket] = []
        # The file system: a path stays when its socket is closed, and then nobody answers there.
        self._paths: dict[str, TwinSocket] = {}
        self._bound: list[TwinSocket] = []
        self._made = 0
        self._port = _FIRST_PORT
        self._listeners = 0
        self._connections = 0

    # --- sockets ------------------------------------------------------------------------------

    def client(self, family: int, proto: int = 0) -> TwinSocket:
        self._connections += 1
        sock = self._make(family, proto, f"the client of connection {self._connections}")
        sock.origin = birthplace()
        return sock

    def listener(self, family: int, proto: int = 0) -> TwinSocket:
        self._listeners += 1
        sock = self._make(family, proto, f"server {self._listeners}")
        sock.origin = birthplace()
        return sock

    def _make(self, family: int, proto: int, name: str) -> TwinSocket:
        fd = _FIRST_FD + self._made
        self._made += 1
        sock = self.sockets[fd] = TwinSocket(self, fd, family, proto, name)
        return sock

    def knows(self, fd: int) -> bool:
        """Whether this is, or was, one of our sockets."""
        return _FIRST_FD <= fd < _FIRST_FD + self._made

    def forget(self, sock: TwinSocket, fd: int) -> None:
        """The socket is closed."""
        del self.sockets[fd]
        if sock in self._bound:
            self._bound.remove(sock)
        if sock.fleeting:
            self._unlink(sock)

    # --- addresses ----------------------------------------------------------------------------

    def bind(self, sock: TwinSocket, address: Any) -> None:
        if sock.family == self.unix:
            # asyncio has removed the socket that another server may have left there.
            self._paths[os.fsdecode(address)] = sock
            sock.local = address
            return
        host, port = address[:2]
        port = port or self._free_port()
        if any(_overlap(sock.family, host, port, other) for other in self._bound):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        sock.local = place(sock.family, host, port)
        self._bound.append(sock)

    def _unlink(self, sock: TwinSocket) -> None:
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

    def connect(self, client: TwinSocket, address: Any) -> int:
        """Join a socket with whoever listens there; the error code, 0 if there is none."""
        if client.family == self.unix:
            path = os.fsdecode(address)
            if path not in self._paths:
                return errno.ENOENT
            listener: TwinSocket | None = self._paths[path]
        else:
            listener = self._listener_at(client.family, *address[:2])
            if not client.local[1]:
                client.local = place(client.family, address[0], self._free_port())
        if listener is None or not listener.listening or listener.closed:
            return errno.ECONNREFUSED
        self._join(client, listener, address)
        return 0

    def _listener_at(self, family: int, host: str, port: int) -> TwinSocket | None:
        for sock in self._bound:
            if sock.listening and _overlap(family, host, port, sock):
                return sock
        real = unseen_listener(family, host, port)
        return None if real is None else adopt_listener(self, real)

    def _join(self, client: TwinSocket, listener: TwinSocket, address: Any) -> None:
        name = client.name.replace("client", "server")
        accepted = self._make(client.family, client.proto, name)
        accepted.local = address
        accepted.origin = listener.origin
        accepted.join(client, client.local)
        client.join(accepted, address)
        listener.waiting.append(accepted)
        listener.refresh()


def _overlap(family: int, host: str, port: int, other: TwinSocket) -> bool:
    """A client that asks for no host in particular gets this machine, too."""
    if (other.family, other.local[1]) != (family, port):
        return False
    return host == other.local[0] or host in _ANYWHERE or other.local[0] in _ANYWHERE
