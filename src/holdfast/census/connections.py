"""The servers and transports of asyncio that nobody has closed.

They are found on the stock selector loops, or noted at their birth. The pipes of a child process
are the child's, and not told; a transport may be part of the server that accepted it, of its other
end in this process, or of the session of a library that opened it.
"""

from __future__ import annotations

import sys
import weakref
from asyncio import AbstractEventLoop, BaseTransport, base_subprocess, selector_events
from asyncio.base_events import Server
from collections.abc import Callable, Hashable, Iterator
from types import FrameType
from typing import Any

from holdfast.census import births, loops, resources
from holdfast.census.birth import Birth, birth_here, is_library, package_of
from holdfast.census.hooks import Hook
from holdfast.census.tasks import members_of
from holdfast.census.thing import Thing

__all__ = ["ServerOpen", "TransportOpen", "all_open", "blind_spots", "hooks"]

_SOCKET_TRANSPORT: type = selector_events._SelectorTransport  # type: ignore[attr-defined]
_PIPE_TRANSPORTS: tuple[type, ...] = ()
if sys.platform != "win32":
    from asyncio import unix_events

    _PIPE_TRANSPORTS = (
        unix_events._UnixReadPipeTransport,  # type: ignore[attr-defined]
        unix_events._UnixWritePipeTransport,  # type: ignore[attr-defined]
    )
_TRANSPORTS = (_SOCKET_TRANSPORT, *_PIPE_TRANSPORTS)

# What a loop does not list: servers that do not serve yet, pipes that are not read from now.
_MADE: weakref.WeakSet[Any] = weakref.WeakSet()
# The packages through which the program has opened a transport.
_MAKERS: weakref.WeakKeyDictionary[BaseTransport, frozenset[str]] = weakref.WeakKeyDictionary()


class ServerOpen(Thing):
    """A server that holds its sockets."""

    __slots__ = ("server",)

    check = "connections"

    def __init__(self, server: Server) -> None:
        super().__init__(births.of(server), server.get_loop())
        self.server = server

    @property
    def key(self) -> Hashable:
        return ("server", id(self.server))

    @property
    def code(self) -> str:
        return "HF741"

    @property
    def what(self) -> str:
        places = [_address(_name(each)) for each in self.server.sockets]
        return f"server on {', '.join(places)}" if places else "server, over"

    def over(self) -> bool:
        return not self.server.sockets


class TransportOpen(Thing):
    """A transport that nobody has closed."""

    __slots__ = ("transport",)

    check = "connections"

    def __init__(self, transport: Any) -> None:
        super().__init__(births.of(transport), transport._loop)
        self.transport = transport

    @property
    def key(self) -> Hashable:
        return ("transport", id(self.transport))

    @property
    def code(self) -> str:
        return "HF742"

    @property
    def what(self) -> str:
        if isinstance(self.transport, _PIPE_TRANSPORTS):
            reads = isinstance(self.transport, _PIPE_TRANSPORTS[0])
            return f"transport of a pipe, {'reading' if reads else 'writing'}"
        here, there = map(_address, _ends(self.transport))
        if not there:
            return f"transport on {here or 'a nameless socket'}"
        return f"transport {here} to {there}" if here else f"transport to {there}"

    def over(self) -> bool:
        return _is_closing(self.transport)

    @property
    def part_of(self) -> Hashable | None:
        """A server that still serves, the other end in this process, or a library's session."""
        server = getattr(self.transport, "_server", None)
        if server is None:
            return self._session()
        if server.sockets:
            return ServerOpen(server).key
        client = self._other_end()
        if client is None:
            return None
        session = client._session()
        return client.key if session is None else session

    def _session(self) -> Hashable | None:
        """The open resource of a library that has opened this one."""
        found = resources.open_of(_MAKERS.get(self.transport, frozenset()))
        # If there are several, that of the same owner.
        found.sort(key=lambda each: each.owner is not self.owner)
        return found[0].key if found else None

    def _other_end(self) -> TransportOpen | None:
        here, there = _ends(self.transport)
        for other in all_open():
            if isinstance(other, TransportOpen) and other.transport is not self.transport:
                if _ends(other.transport) == (there, here) and _is_client(other.transport):
                    return other
        return None


def all_open(loop: AbstractEventLoop | None = None) -> Iterator[ServerOpen | TransportOpen]:
    """Each open server and transport, of one loop or of all."""
    found: dict[int, Any] = {id(thing): thing for thing in members_of(_MADE)}
    for each in loops.known(loop):
        found.update((id(thing), thing) for thing in _on(each))
    for thing in found.values():
        if loop is not None and thing._loop is not loop:
            continue
        if isinstance(thing, Server):
            if thing.sockets:
                yield ServerOpen(thing)
        elif not _is_closing(thing) and not _is_a_childs(thing):
            yield TransportOpen(thing)


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """Loops that do not show their servers and transports."""
    return loops.unseen("connections (servers, transports)", "_transports", loop)


def _on(loop: Any) -> Iterator[Any]:
    """The servers and transports that a loop knows, closed ones among them."""
    if not hasattr(loop, "_transports"):
        return
    yield from members_of(loop._transports.values())
    # None once the loop is closed; what it still knows may be open all the same.
    watched = loop._selector.get_map() if loop._selector is not None else None
    for entry in members_of((watched or {}).values()):
        for handle in entry.data or ():
            if handle is not None:
                yield from _behind(handle)


def _behind(handle: Any) -> Iterator[Any]:
    """Whoever waits for a socket: a transport itself, or the loop for a server."""
    if isinstance(getattr(handle._callback, "__self__", None), _TRANSPORTS):
        yield handle._callback.__self__
    yield from (each for each in handle._args or () if isinstance(each, Server))


def _is_closing(transport: Any) -> bool:
    # Over TLS the program closes the transport above, and this one follows when the other side
    # has answered.
    above = getattr(transport.get_protocol(), "_app_transport", None)
    return transport.is_closing() or (above is not None and above.is_closing())


def _is_a_childs(transport: Any) -> bool:
    return isinstance(transport.get_protocol(), base_subprocess.WriteSubprocessPipeProto)


def _is_client(transport: Any) -> bool:
    return getattr(transport, "_server", None) is None


# --- words -------------------------------------------------------------------------------------


def _ends(transport: BaseTransport) -> tuple[Any, Any]:
    return transport.get_extra_info("sockname"), transport.get_extra_info("peername")


def _name(sock: Any) -> Any:
    try:
        return sock.getsockname()
    except OSError:  # closed behind the server's back
        return "a closed socket"


def _address(name: Any) -> str:
    if isinstance(name, tuple) and len(name) >= 2:
        host, port = name[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    if isinstance(name, bytes):  # an abstract socket
        name = name.decode(errors="replace").replace("\0", "@")
    return str(name) if name else ""


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where servers and transports are made."""
    for kind in (Server, *_TRANSPORTS):
        yield Hook(kind, "__init__", _around_init)


def _around_init(init: Callable[..., None]) -> Callable[..., None]:
    def noted(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        frame = sys._getframe(1)
        births.register(self, _accepted(self) or birth_here(frame, births.owner_now()))
        if isinstance(self, BaseTransport):
            _MAKERS[self] = frozenset(_packages(frame))
        if not isinstance(self, _SOCKET_TRANSPORT):
            _MADE.add(self)

    return noted


def _accepted(transport: Any) -> Birth | None:
    """The line that runs the loop has accepted nothing: the server has, wherever it was made."""
    born = births.of(getattr(transport, "_server", None))
    # Its own, since it is told of on its own.
    return born and Birth(born.code, born.lasti, born.near_code, born.near_lasti, born.owner)


def _packages(frame: FrameType | None) -> Iterator[str]:
    """The packages between a frame and the nearest line of the program."""
    while frame is not None and is_library(frame.f_code.co_filename):
        package = package_of(frame.f_code.co_filename)
        if package:
            yield package
        frame = frame.f_back
