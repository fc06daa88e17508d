"""Real socket objects that a program makes itself and hands to the loop.

No call is made on the network with them: `loop.sock_connect` notes where one leads, and a twin
stands in for it from then on. When the program closes its object, the twin is closed as well.
Only what the program itself does with one (bind, listen) is real.
"""

from __future__ import annotations

import errno
import gc
import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from holdfast.explore.twins.network.sockets import TwinSocket

if TYPE_CHECKING:
    from holdfast.explore.twins.network.kernel import Kernel

__all__ = ["adopt", "adopt_listener", "adopted", "unseen_listener"]

_TWINS: WeakKeyDictionary[socket.socket, TwinSocket] = WeakKeyDictionary()


class _Adopted(socket.socket):
    """A program's socket object that has a twin. Only closing is different."""

    __slots__ = ()

    def _real_close(self, *args: Any) -> None:
        super()._real_close(*args)  # type: ignore[misc]
        twin = _TWINS.pop(self, None)
        if twin is not None:
            twin.close()


def adopt(sock: socket.socket, twin: TwinSocket) -> TwinSocket:
    """Let the twin stand in for this object of the program's."""
    if type(sock) is socket.socket:
        # The object is the program's, and so is its name; closing it has to be heard of here.
        sock.__class__ = _Adopted
    _TWINS[sock] = twin
    twin.real = sock
    return twin


def adopted(sock: Any) -> TwinSocket | None:
    """The twin of this object, or the object if it is one."""
    if isinstance(sock, socket.socket):
        return _TWINS.get(sock)
    return sock if isinstance(sock, TwinSocket) else None


def adopt_listener(kernel: Kernel, sock: socket.socket) -> TwinSocket:
    """A twin for a socket that the program has bound, and maybe listens on, itself."""
    twin = kernel.listener(sock.family, sock.proto)
    twin.bind(sock.getsockname())
    twin.listening = _listens(sock)
    twin.handed_over = True
    return adopt(sock, twin)


def unseen_listener(family: int, host: str, port: int) -> socket.socket | None:
    """A socket on which the program listens, and which it has not handed to the loop so far.

    The kernel of the machine would let a client wait there, so nobody may be refused.
    """
    if _free(family, host, port):
        return None
    for thing in gc.get_objects():  # a search that is only made when the port is in use
        if type(thing) is socket.socket and thing.fileno() >= 0 and thing.family == family:
            if thing.getsockname()[1] == port and _listens(thing):
                return thing
    return None


def _listens(sock: socket.socket) -> bool:
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _free(family: int, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
