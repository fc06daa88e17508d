"""Real socket objects that a program creates itself and passes to the loop.

No call reaches the network: `loop.sock_connect` creates a `FakeSocket`, which is used in place of
the object from then on. When the program closes its object, the fake socket is closed as well. Only
what the program itself calls on the object (bind, listen) is real.
"""

from __future__ import annotations

import errno
import gc
import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from handfast._explore.simulation.network.sockets import FakeSocket

if TYPE_CHECKING:
    from handfast._explore.simulation.network.kernel import Kernel


# Weak: a program that drops its socket object closes the connection, as a real one would.
_FAKES: WeakKeyDictionary[socket.socket, FakeSocket] = WeakKeyDictionary()


class _Adopted(socket.socket):
    """A socket object that has a fake socket. Only closing is different."""

    __slots__ = ()

    def _real_close(self, *args: Any) -> None:
        super()._real_close(*args)  # type: ignore[misc]
        fake = _FAKES.pop(self, None)
        if fake is not None:
            fake.close()


def adopt(sock: socket.socket, fake: FakeSocket) -> FakeSocket:
    """Use the fake socket in place of this object from now on."""
    if type(sock) is socket.socket:
        # The program keeps its object, so its class is changed: closing it must close the fake.
        sock.__class__ = _Adopted
    _FAKES[sock] = fake
    fake.real = sock
    return fake


def adopted(sock: Any) -> FakeSocket | None:
    """The fake socket of this object, or the object itself if it is one."""
    if isinstance(sock, socket.socket):
        return _FAKES.get(sock)
    return sock if isinstance(sock, FakeSocket) else None


def adopt_listener(kernel: Kernel, sock: socket.socket) -> FakeSocket:
    """A fake socket for one that the program has bound itself, and maybe listens on."""
    fake = kernel.listener(sock.family, sock.proto)
    fake.bind(sock.getsockname())
    fake.listening = _listens(sock)
    fake.handed_over = True
    return adopt(sock, fake)


def unseen_listener(family: int, host: str, port: int) -> socket.socket | None:
    """A socket on which the program listens without having passed it to the loop.

    A real kernel would queue a client there, so the connection must not be refused.
    """
    if _free(family, host, port):
        return None
    for thing in gc.get_objects():  # slow, but only done when the port is in use
        if type(thing) is socket.socket and thing.fileno() >= 0 and thing.family == family:
            if thing.getsockname()[1] == port and _listens(thing):
                return thing
    return None


def _listens(sock: socket.socket) -> bool:
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _free(family: int, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        # Otherwise connections in TIME_WAIT would make a free port look used.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True
