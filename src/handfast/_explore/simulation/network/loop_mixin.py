"""The network methods of the event loop, on the kernel in memory.

The methods here create sockets; everything after that is code of the stock loop
(`_StockSocketCalls`). A socket that was not connected here is refused, with the name of the call.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import sys
from asyncio import base_events, futures, selector_events
from collections.abc import Callable, Iterable
from typing import Any, cast
from weakref import WeakValueDictionary

from handfast._explore.loop.unsupported import Refusing
from handfast._explore.simulation.network.kernel import Kernel
from handfast._explore.simulation.network.real_sockets import adopt, adopt_listener, adopted
from handfast._explore.simulation.network.selector import SocketTable
from handfast._explore.simulation.network.sockets import FakeSocket
from handfast._explore.simulation.network.transports import FakeTransport
from handfast._explore.verdict.leftovers import network_left
from handfast._explorer_internals import chain_copies_at_once

_SELECTOR: Any = selector_events.BaseSelectorEventLoop
_STOCK: Any = asyncio.SelectorEventLoop
_FOREIGN = "the explorer has not connected this socket"


def _as_stock(method: Callable[..., Any]) -> Any:
    """Hide the signature, which differs between Python versions, from the type checker."""
    return method


def _on_fake_socket(name: str) -> Any:
    """The method of the stock loop, on the fake socket of its first argument."""

    async def call(self: Any, sock: Any, *args: Any) -> Any:
        return await getattr(_STOCK, name)(self, self._fake(sock, f"loop.{name}"), *args)

    return call


def _on_descriptor(name: str) -> Any:
    """The method of the stock loop for a fake socket, a refusal for any other descriptor."""

    def call(self: Any, fd: Any, *args: Any) -> Any:
        implementation, fd = self._implementation(fd)
        return getattr(implementation, name)(self, fd, *args)

    return call


class _StockSocketCalls:
    """Methods of `BaseSelectorEventLoop` that work without its selector and its self-pipe.

    They reach the outside only through `_selector` and the methods of the sockets, which are both
    simulated, so each Python version keeps its own semantics.
    """

    _make_ssl_transport = _STOCK._make_ssl_transport
    _start_serving = _STOCK._start_serving
    # The POSIX version looks for the files of real sockets.
    _stop_serving = _SELECTOR._stop_serving
    _accept_connection = _STOCK._accept_connection
    _ensure_fd_no_transport = _STOCK._ensure_fd_no_transport
    _add_reader = _STOCK._add_reader
    _remove_reader = _STOCK._remove_reader
    _add_writer = _STOCK._add_writer
    _remove_writer = _STOCK._remove_writer
    _sock_connect = _STOCK._sock_connect
    _sock_connect_cb = _STOCK._sock_connect_cb
    _sock_write_done = _STOCK._sock_write_done
    _sock_read_done = _STOCK._sock_read_done
    _sock_accept = _STOCK._sock_accept
    _sock_recv = _STOCK._sock_recv
    _sock_recv_into = _STOCK._sock_recv_into
    _sock_sendall = _STOCK._sock_sendall
    # The fallback that copies chunk by chunk, without a system call.
    sendfile: Any = base_events.BaseEventLoop.sendfile


class Network(_StockSocketCalls):
    """A mixin for the explored loop: the network is in memory, and nothing leaves the process."""

    _network: Kernel | None = None

    @property
    def _kernel(self) -> Kernel:
        if self._network is None:
            self._network = Kernel(self)
            self._transports: WeakValueDictionary[int, Any] = WeakValueDictionary()
        return self._network

    @property
    def _selector(self) -> SocketTable:
        return self._kernel.table

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        if self._network is not None:
            self._network.close()
            self._network = None

    def _left_over_network(self) -> tuple[str, str, tuple[str, ...]] | None:
        """A server or transport that is still open at the end of the program."""
        return None if self._network is None else network_left(self._network)

    # --- names --------------------------------------------------------------------------------

    @_as_stock
    async def getaddrinfo(self, host: Any, port: Any, **hints: int) -> Any:
        await self._resolved(f"the address of {host}")
        return self._kernel.resolver.look_up(host, port, **hints)

    @_as_stock
    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        host, port = sockaddr[:2]
        await self._resolved(f"the name of {host}")
        name = host if flags & socket.NI_NUMERICHOST else self._kernel.resolver.name(host)
        return name, str(port)

    def _resolved(self, label: str) -> asyncio.Future[None]:
        """A future for the answer, which the stock loop gets from a thread."""
        loop = cast("Any", self)
        # The stock loop awaits a future that a thread completes; the number of steps must match.
        answer: asyncio.Future[None] = loop.create_future()
        if chain_copies_at_once() and self._answered_already(label):
            answer.set_result(None)
            return answer
        answered = cast("Any", futures)._set_result_unless_cancelled
        loop.channel("resolver", between=True).post(
            lambda: loop.enqueue(answered, answer, None), label=label
        )
        return answer

    def _answered_already(self, label: str) -> bool:
        """Whether the thread is done before its future is wrapped, so that nothing is awaited."""
        loop = cast("Any", self)
        return bool(
            loop.choose(
                "thread", 2, lambda: ("", "resolver"), lambda _: f"{label} is known at once"
            )
        )

    # --- clients ------------------------------------------------------------------------------

    @_as_stock
    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        # The stock loop checks and uses this socket, so it has to be the fake one.
        if options.get("sock") is not None:
            options["sock"] = self._fake(options["sock"], "loop.create_connection(sock=...)")
        return await cast("Any", super()).create_connection(protocol_factory, host, port, **options)

    @_as_stock
    async def _connect_sock(
        self, exceptions: Any, addr_info: Any, local_addr_infos: Any = None
    ) -> FakeSocket:
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
            exceptions = mine = None  # break the reference cycle through the traceback
        return sock

    @_as_stock
    async def create_unix_connection(
        self, protocol_factory: Any, path: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if path is None or sock is not None:
            if sock is not None:
                sock = self._fake(sock, "loop.create_unix_connection(sock=...)")
            return await _STOCK.create_unix_connection(
                self, protocol_factory, path, sock=sock, **options
            )
        fake = self._kernel.client(self._kernel.unix)
        try:
            fake.connect(os.fspath(path))
            return await _STOCK.create_unix_connection(self, protocol_factory, sock=fake, **options)
        finally:
            self._close_unused(fake)

    @_as_stock
    async def sock_connect(self, sock: Any, address: Any) -> None:
        fake = adopted(sock)
        if fake is None:
            if sock.type != socket.SOCK_STREAM:
                cast("Any", self).refuse("loop.sock_connect", "the explorer has no datagrams")
            fake = adopt(sock, self._kernel.client(sock.family, sock.proto))
            fake.local = sock.getsockname()
        await _STOCK.sock_connect(self, fake, address)

    def _make_socket_transport(
        self,
        sock: Any,
        protocol: Any,
        waiter: Any = None,
        *,
        extra: Any = None,
        server: Any = None,
        **context: Any,
    ) -> FakeTransport:
        # Since 3.15 a server passes `context=` to its transports.
        return FakeTransport(self, sock, protocol, waiter, extra, server, **context)

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
            fake = self._bound(sock)
            return await stock.create_server(
                protocol_factory, host, port, sock=fake, start_serving=start_serving, **options
            )
        if reuse_port:
            cast("Any", self).refuse(
                "loop.create_server(reuse_port=True)",
                "the kernel decides which server gets a client",
            )
        infos = await asyncio.gather(
            *(
                cast("Any", self)._create_server_getaddrinfo(each, port, family=family, flags=flags)
                for each in _hosts(host)
            )
        )
        # Without duplicates and in order, as in the stock loop.
        sockets = self._bind_all(dict.fromkeys(itertools.chain.from_iterable(infos)))
        try:
            # The stock loop takes one socket as an argument; the others are added below.
            server = await stock.create_server(
                protocol_factory, sock=sockets[0], start_serving=False, **options
            )
        except BaseException:
            _close_all(sockets)
            raise
        # Before it serves: `start_serving` listens on all of them.
        server._sockets.extend(sockets[1:])
        if start_serving:
            await server.start_serving()
        # Only now does the caller get the server; see `FakeSocket.handed_over`.
        for each in sockets:
            each.handed_over = True
        return server

    def _bind_all(self, infos: Iterable[Any]) -> list[FakeSocket]:
        sockets: list[FakeSocket] = []
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
        unlinks_path = False
        if sys.version_info >= (3, 13):
            unlinks_path = options.get("cleanup_socket", True)
            options["cleanup_socket"] = False  # there is no file
        if path is None or sock is not None:
            fake = self._bound(sock)
            return await _STOCK.create_unix_server(
                self, protocol_factory, path, sock=fake, **options
            )
        fake = self._kernel.listener(self._kernel.unix)
        fake.bind(os.fspath(path))
        fake.unlinks_path = unlinks_path
        try:
            server = await _STOCK.create_unix_server(self, protocol_factory, sock=fake, **options)
        except (TypeError, ValueError):
            fake.close()
            raise
        fake.handed_over = True
        return server

    async def _accept_connection2(
        self, protocol_factory: Any, conn: FakeSocket, *args: Any, **options: Any
    ) -> None:
        try:
            await _STOCK._accept_connection2(self, protocol_factory, conn, *args, **options)
        finally:
            self._close_unused(conn)  # a real one would be closed by the garbage collector

    def _bound(self, sock: Any) -> Any:
        """The fake socket of one that the program has bound itself."""
        if sock is None or getattr(sock, "type", None) != socket.SOCK_STREAM:
            return sock  # the stock loop raises the right error
        return adopted(sock) or adopt_listener(self._kernel, sock)

    # --- sockets without a transport ----------------------------------------------------------

    sock_recv = _on_fake_socket("sock_recv")
    sock_recv_into = _on_fake_socket("sock_recv_into")
    sock_sendall = _on_fake_socket("sock_sendall")

    @_as_stock
    async def sock_accept(self, sock: Any) -> Any:
        return await _STOCK.sock_accept(self, self._bound(sock))

    @_as_stock
    async def connect_accepted_socket(
        self, protocol_factory: Any, sock: Any, **options: Any
    ) -> Any:
        fake = self._fake(sock, "loop.connect_accepted_socket")
        return await _STOCK.connect_accepted_socket(self, protocol_factory, fake, **options)

    add_reader = _on_descriptor("add_reader")
    remove_reader = _on_descriptor("remove_reader")
    add_writer = _on_descriptor("add_writer")
    remove_writer = _on_descriptor("remove_writer")

    def _implementation(self, fd: Any) -> tuple[Any, int]:
        """The implementation for this descriptor: the stock loop for a fake socket, else a refusal."""
        sock = None if isinstance(fd, int) else adopted(fd)
        number: int = fd if isinstance(fd, int) else (sock or fd).fileno()
        ours = self._network is not None and self._network.knows(number)
        return (_STOCK if ours else Refusing), number

    def _fake(self, sock: Any, name: str) -> FakeSocket:
        return adopted(sock) or cast("Any", self).refuse(name, _FOREIGN)

    def _close_unused(self, sock: FakeSocket) -> None:
        """Close a socket that no transport has taken over."""
        if not sock.closed and sock.fileno() not in self._transports:
            sock.close()


def _close_all(sockets: Iterable[FakeSocket]) -> None:
    for sock in sockets:
        sock.close()


def _hosts(host: Any) -> list[Any]:
    if host == "":
        return [None]
    return [host] if isinstance(host, str) or not isinstance(host, Iterable) else list(host)


def _bind(sock: FakeSocket, address: Any) -> None:
    try:
        sock.bind(address)
    except OSError as error:
        said = (
            f"error while attempting to bind on address {address!r}: {str(error.strerror).lower()}"
        )
        raise OSError(error.errno, said) from None


def _bind_to_one(sock: FakeSocket, infos: Iterable[Any]) -> None:
    """The first of these local addresses that is free and of the right family."""
    failed: OSError | None = None
    for family, _, _, _, address in infos:
        if family == sock.family:
            try:
                return _bind(sock, address)
            except OSError as error:
                failed = error
    raise failed or OSError(f"no matching local address with family={sock.family} found")
