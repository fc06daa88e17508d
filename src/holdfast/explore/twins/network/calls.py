"""The calls of an event loop that go to the network, on the kernel in memory.

Here is what the stock loop would make sockets for. Whatever it does with them afterwards is
`borrowed`; where a socket comes from that nobody here has connected, the call is refused by name.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import sys
from asyncio import futures
from collections.abc import Callable, Iterable
from typing import Any, cast
from weakref import WeakValueDictionary

from holdfast.explore.refusals import Refusing
from holdfast.explore.twins.network.adopting import adopt, adopt_listener, adopted
from holdfast.explore.twins.network.borrowed import Borrowed
from holdfast.explore.twins.network.kernel import Kernel
from holdfast.explore.twins.network.leftovers import left_over, silence
from holdfast.explore.twins.network.selecting import Table
from holdfast.explore.twins.network.sockets import TwinSocket
from holdfast.explore.twins.network.transports import TwinTransport

__all__ = ["Network"]

_STOCK: Any = asyncio.SelectorEventLoop
_FOREIGN = "the explorer has not connected this socket"


def _as_stock(method: Callable[..., Any]) -> Any:
    """The signature is the stock loop's, in each version its own."""
    return method


class Network(Borrowed):
    """A mixin for the explored loop: the network is in memory, and nothing leaves the process."""

    _network: Kernel | None = None

    @property
    def _kernel(self) -> Kernel:
        if self._network is None:
            self._network = Kernel(self)
            self._transports: WeakValueDictionary[int, Any] = WeakValueDictionary()
        return self._network

    @property
    def _selector(self) -> Table:
        return self._kernel.table

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        if self._network is not None:
            silence(self._network)
            self._network = None

    def _left_over_network(self) -> tuple[str, str, tuple[str, ...]] | None:
        """A server that still listens, or an open transport, at the end of the program."""
        return None if self._network is None else left_over(self._network)

    # --- names --------------------------------------------------------------------------------

    @_as_stock
    async def getaddrinfo(self, host: Any, port: Any, **hints: int) -> Any:
        await self._asked(f"the address of {host}")
        return self._kernel.names.look_up(host, port, **hints)

    @_as_stock
    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        host, port = sockaddr[:2]
        await self._asked(f"the name of {host}")
        name = host if flags & socket.NI_NUMERICHOST else self._kernel.names.name(host)
        return name, str(port)

    def _asked(self, label: str) -> asyncio.Future[None]:
        """The stock loop asks in a thread, and the thread hands the answer over."""
        loop = cast("Any", self)
        answer: asyncio.Future[None] = loop.create_future()
        answered = cast("Any", futures)._set_result_unless_cancelled
        loop.channel("resolver", between=True).post(
            lambda: loop.enqueue(answered, answer, None), label=label
        )
        return answer

    # --- clients ------------------------------------------------------------------------------

    @_as_stock
    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        if options.get("sock") is not None:
            options["sock"] = self._twin(options["sock"], "loop.create_connection(sock=...)")
        return await cast("Any", super()).create_connection(protocol_factory, host, port, **options)

    @_as_stock
    async def _connect_sock(
        self, exceptions: Any, addr_info: Any, local_addr_infos: Any = None
    ) -> TwinSocket:
        mine: Any = []
        exceptions.append(mine)
        family, _, proto, _, address = addr_info
        sock = self._kernel.client(family, proto)
        try:
            if local_addr_infos is not None:
                _bind_to_one(sock, local_addr_infos)
            await _STOCK.sock_connect(self, sock, address)
        except BaseException as error:
            sock.close()
            if isinstance(error, OSError):
                mine.append(error)
            raise
        finally:
            exceptions = mine = None  # an error that holds itself would stay
        return sock

    @_as_stock
    async def create_unix_connection(
        self, protocol_factory: Any, path: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if path is None or sock is not None:
            if sock is not None:
                sock = self._twin(sock, "loop.create_unix_connection(sock=...)")
            return await _STOCK.create_unix_connection(
                self, protocol_factory, path, sock=sock, **options
            )
        twin = self._kernel.client(self._kernel.unix)
        try:
            twin.connect(os.fspath(path))
            return await _STOCK.create_unix_connection(self, protocol_factory, sock=twin, **options)
        finally:
            self._close_unused(twin)

    @_as_stock
    async def sock_connect(self, sock: Any, address: Any) -> None:
        twin = adopted(sock)
        if twin is None:
            if sock.type != socket.SOCK_STREAM:
                cast("Any", self).refuse("loop.sock_connect", "the explorer has no datagrams")
            twin = adopt(sock, self._kernel.client(sock.family, sock.proto))
            twin.local = sock.getsockname()
        await _STOCK.sock_connect(self, twin, address)

    def _make_socket_transport(
        self, sock: Any, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> TwinTransport:
        return TwinTransport(self, sock, protocol, waiter, extra, server)

    # --- servers ------------------------------------------------------------------------------

    @_as_stock
    async def create_server(
        self,
        protocol_factory: Any,
        host: Any = None,
        port: Any = None,
        *,
        family: int = socket.AF_UNSPEC,
        flags: int = socket.AI_PASSIVE,
        sock: Any = None,
        reuse_port: Any = None,
        start_serving: bool = True,
        **options: Any,
    ) -> Any:
        stock = cast("Any", super())
        if sock is not None or (host is None and port is None):
            twin = self._bound(sock)
            return await stock.create_server(
                protocol_factory, host, port, sock=twin, start_serving=start_serving, **options
            )
        if reuse_port:
            cast("Any", self).refuse(
                "loop.create_server(reuse_port=True)", "which server gets a client is the kernel's"
            )
        infos = await asyncio.gather(
            *(
                cast("Any", self)._create_server_getaddrinfo(each, port, family=family, flags=flags)
                for each in _hosts(host)
            )
        )
        sockets = self._bind_all(dict.fromkeys(itertools.chain.from_iterable(infos)))
        try:
            # The stock loop makes a server of one socket that it is given; the others follow.
            server = await stock.create_server(
                protocol_factory, sock=sockets[0], start_serving=False, **options
            )
        except BaseException:
            _close_all(sockets)
            raise
        server._sockets.extend(sockets[1:])
        if start_serving:
            await server.start_serving()
        for each in sockets:
            each.handed_over = True
        return server

    def _bind_all(self, infos: Iterable[Any]) -> list[TwinSocket]:
        sockets: list[TwinSocket] = []
        try:
            for family, _, proto, _, address in infos:
                sockets.append(self._kernel.listener(family, proto))
                _bind(sockets[-1], address)
        except OSError:
            _close_all(sockets)
            raise
        return sockets

    @_as_stock
    async def create_unix_server(
        self, protocol_factory: Any, path: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        fleeting = False
        if sys.version_info >= (3, 13):
            fleeting = options.get("cleanup_socket", True)
            options["cleanup_socket"] = False  # there is no file
        if path is None or sock is not None:
            twin = self._bound(sock)
            return await _STOCK.create_unix_server(
                self, protocol_factory, path, sock=twin, **options
            )
        twin = self._kernel.listener(self._kernel.unix)
        twin.bind(os.fspath(path))
        twin.fleeting = fleeting
        try:
            server = await _STOCK.create_unix_server(self, protocol_factory, sock=twin, **options)
        except (TypeError, ValueError):
            twin.close()
            raise
        twin.handed_over = True
        return server

    async def _accept_connection2(
        self, protocol_factory: Any, conn: TwinSocket, *args: Any, **options: Any
    ) -> None:
        try:
            await _STOCK._accept_connection2(self, protocol_factory, conn, *args, **options)
        finally:
            self._close_unused(conn)  # a real one would be collected, and closed by that

    def _bound(self, sock: Any) -> Any:
        """The twin of a socket that the program has bound itself."""
        if sock is None or getattr(sock, "type", None) != socket.SOCK_STREAM:
            return sock  # the stock loop knows what to say
        return adopted(sock) or adopt_listener(self._kernel, sock)

    # --- sockets without a transport ----------------------------------------------------------

    @_as_stock
    async def sock_recv(self, sock: Any, n: int) -> Any:
        return await _STOCK.sock_recv(self, self._twin(sock, "loop.sock_recv"), n)

    @_as_stock
    async def sock_recv_into(self, sock: Any, buf: Any) -> Any:
        return await _STOCK.sock_recv_into(self, self._twin(sock, "loop.sock_recv_into"), buf)

    @_as_stock
    async def sock_sendall(self, sock: Any, data: Any) -> None:
        await _STOCK.sock_sendall(self, self._twin(sock, "loop.sock_sendall"), data)

    @_as_stock
    async def sock_accept(self, sock: Any) -> Any:
        return await _STOCK.sock_accept(self, self._bound(sock))

    @_as_stock
    async def connect_accepted_socket(
        self, protocol_factory: Any, sock: Any, **options: Any
    ) -> Any:
        twin = self._twin(sock, "loop.connect_accepted_socket")
        return await _STOCK.connect_accepted_socket(self, protocol_factory, twin, **options)

    @_as_stock
    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        who, fd = self._watching(fd)
        return who.add_reader(self, fd, callback, *args)

    @_as_stock
    def remove_reader(self, fd: Any) -> Any:
        who, fd = self._watching(fd)
        return who.remove_reader(self, fd)

    @_as_stock
    def add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
        who, fd = self._watching(fd)
        return who.add_writer(self, fd, callback, *args)

    @_as_stock
    def remove_writer(self, fd: Any) -> Any:
        who, fd = self._watching(fd)
        return who.remove_writer(self, fd)

    def _watching(self, fd: Any) -> tuple[Any, int]:
        """Who answers for this descriptor: the stock loop's code for a twin, else a refusal."""
        sock = None if isinstance(fd, int) else adopted(fd)
        number: int = fd if isinstance(fd, int) else (sock or fd).fileno()
        ours = self._network is not None and self._network.knows(number)
        return (_STOCK if ours else Refusing), number

    def _twin(self, sock: Any, name: str) -> TwinSocket:
        return adopted(sock) or cast("Any", self).refuse(name, _FOREIGN)

    def _close_unused(self, sock: TwinSocket) -> None:
        """A socket that no transport has taken over is closed by whoever made it."""
        if not sock.closed and sock.fileno() not in self._transports:
            sock.close()


def _close_all(sockets: Iterable[TwinSocket]) -> None:
    for sock in sockets:
        sock.close()


def _hosts(host: Any) -> list[Any]:
    if host == "":
        return [None]
    return [host] if isinstance(host, str) or not isinstance(host, Iterable) else list(host)


def _bind(sock: TwinSocket, address: Any) -> None:
    try:
        sock.bind(address)
    except OSError as error:
        said = (
            f"error while attempting to bind on address {address!r}: {str(error.strerror).lower()}"
        )
        raise OSError(error.errno, said) from None


def _bind_to_one(sock: TwinSocket, infos: Iterable[Any]) -> None:
    """The first of these local addresses that is free and of the right family."""
    failed: OSError | None = None
    for family, _, _, _, address in infos:
        if family == sock.family:
            try:
                return _bind(sock, address)
            except OSError as error:
                failed = error
    raise failed or OSError(f"no matching local address with family={sock.family} found")
