"""Open servers and transports of asyncio.

They are listed by the stock selector loops, or recorded at their creation. A transport may be part
of the server that accepted it, of its other end in this process, or of the session of a library
that opened it. The pipes of a child process belong to the child and are not listed.
"""

from __future__ import annotations

import sys
import weakref
from asyncio import AbstractEventLoop, BaseTransport, base_subprocess
from asyncio.base_events import Server
from collections.abc import Hashable, Iterator
from types import FrameType
from typing import Any

from handfast._asyncio_internals import (
    arguments_of,
    callback_of,
    loop_of,
    pipe_transports,
    server_of,
    snapshot,
    socket_transports,
    transports_of,
    watched_handles,
)
from handfast._census import creation_log, event_loops
from handfast._census.creation import Creation, creation_in
from handfast._census.kind import Kind
from handfast._census.kinds import closables
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_after
from handfast._code_owner import installed_project, is_program

_SOCKET_TRANSPORTS = socket_transports()
_PIPE_TRANSPORTS = pipe_transports()
_TRANSPORTS = (*_SOCKET_TRANSPORTS, *_PIPE_TRANSPORTS)

# What a loop does not list: servers that do not serve yet, pipes that are not being read.
_CREATED: weakref.WeakSet[Any] = weakref.WeakSet()
# The packages through which the program has opened a transport.
_OPENED_BY: weakref.WeakKeyDictionary[BaseTransport, frozenset[str]] = weakref.WeakKeyDictionary()


def open_connections(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each open server and transport, of one loop or of all."""
    for found in _all_found(loop):
        if isinstance(found, Server):
            if found.sockets:
                yield _live_server(found)
        elif not _is_closing(found) and not _is_a_childs(found):
            yield _live_transport(found)


def _all_found(loop: AbstractEventLoop | None) -> list[Any]:
    found: dict[int, Any] = {id(created): created for created in snapshot(_CREATED)}
    for each in event_loops.known(loop):
        found.update((id(listed), listed) for listed in _on(each))
    return [each for each in found.values() if loop is None or loop_of(each) is loop]


def _live_server(server: Server) -> LiveObject:
    addresses = ", ".join(address(_socket_name(each)) for each in server.sockets)
    return LiveObject(
        check="connections",
        code="HF741",
        key=_key(server),
        what=f"server on {addresses}",
        ended=lambda: not server.sockets,
        creation=creation_log.creation_of(server),
        loop=server.get_loop(),
        target=server,
    )


def _live_transport(transport: Any) -> LiveObject:
    return LiveObject(
        check="connections",
        code="HF742",
        key=_key(transport),
        what=_describe(transport),
        ended=lambda: _is_closing(transport),
        creation=creation_log.creation_of(transport),
        loop=loop_of(transport),
        target=transport,
        part_of=lambda: _whole(transport),
    )


def _key(connection: Any) -> Hashable:
    return ("server" if isinstance(connection, Server) else "transport", id(connection))


def _whole(transport: Any) -> Hashable | None:
    """The server that accepted a transport and still serves, the other end, or the session."""
    server = server_of(transport)
    if server is None:
        return _session(transport)
    if server.sockets:
        return _key(server)
    client = _other_end(transport)
    if client is None:
        return None
    session = _session(client)
    return _key(client) if session is None else session


def _session(transport: Any) -> Hashable | None:
    """The open session of a library that has opened this transport."""
    creation = creation_log.creation_of(transport)
    owner = creation.owner if creation is not None else None
    found = closables.opened_by(_OPENED_BY.get(transport, frozenset()))
    # If there are several, that of the same owner.
    found.sort(key=lambda session: session.owner is not owner)
    return found[0].key if found else None


def _other_end(transport: Any) -> Any:
    """The client's transport in this process to which an accepted one is connected."""
    here, there = _ends(transport)
    for other in _all_found(None):
        if isinstance(other, Server) or other is transport or _is_closing(other):
            continue
        if _ends(other) == (there, here) and server_of(other) is None:
            return other
    return None


def _on(loop: Any) -> Iterator[Any]:
    """The servers and transports that a loop lists, closed ones among them."""
    yield from transports_of(loop)
    for handle in watched_handles(loop):
        # A socket is waited for by a transport itself, or by the loop for a server.
        waiting = getattr(callback_of(handle), "__self__", None)
        if isinstance(waiting, _TRANSPORTS):
            yield waiting
        yield from (each for each in arguments_of(handle) if isinstance(each, Server))


def _is_closing(transport: Any) -> bool:
    # With TLS the program closes the transport above, and this one follows when the peer has
    # answered.
    above = getattr(transport.get_protocol(), "_app_transport", None)
    return transport.is_closing() or (above is not None and above.is_closing())


def _is_a_childs(transport: Any) -> bool:
    return isinstance(transport.get_protocol(), base_subprocess.WriteSubprocessPipeProto)


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    return event_loops.not_listed("connections (servers, transports)", "_transports", loop)


# --- names -------------------------------------------------------------------------------------


def _describe(transport: Any) -> str:
    if isinstance(transport, _PIPE_TRANSPORTS):
        reads = isinstance(transport, _PIPE_TRANSPORTS[0])
        return f"transport of a pipe, {'reading' if reads else 'writing'}"
    here, there = map(address, _ends(transport))
    if not there:
        return f"transport on {here or 'a nameless socket'}"
    return f"transport {here} to {there}" if here else f"transport to {there}"


def _ends(transport: BaseTransport) -> tuple[Any, Any]:
    return transport.get_extra_info("sockname"), transport.get_extra_info("peername")


def _socket_name(sock: Any) -> Any:
    try:
        return sock.getsockname()
    except OSError:  # closed without the server's knowledge
        return "a closed socket"


def address(name: Any) -> str:
    """The address of a socket, for reports."""
    if isinstance(name, tuple) and len(name) >= 2:
        host, port = name[:2]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    if isinstance(name, bytes):  # an abstract socket
        name = name.decode(errors="replace").replace("\0", "@")
    return str(name) if name else ""


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the creation of servers and transports."""
    for connection_type in (Server, *_TRANSPORTS):
        yield Patch(connection_type, "__init__", call_after(_record))


def _record(created: Any, *args: Any, **options: Any) -> None:
    frame = sys._getframe(2)
    creation = _creation_of_server(created) or creation_in(frame, creation_log.current_owner())
    creation_log.store(created, creation)
    if isinstance(created, BaseTransport):
        _OPENED_BY[created] = frozenset(_packages(frame))
    if not isinstance(created, _SOCKET_TRANSPORTS):
        _CREATED.add(created)


def _creation_of_server(transport: Any) -> Creation | None:
    """For an accepted transport: the loop's frames lead nowhere, so the server's line is shown."""
    creation = creation_log.creation_of(server_of(transport))
    return creation and creation.for_owner(creation.owner)


def _packages(frame: FrameType | None) -> Iterator[str]:
    """The packages between a frame and the nearest line of the program."""
    while frame is not None and not is_program(frame.f_code.co_filename):
        package = installed_project(frame.f_code.co_filename)
        if package:
            yield package
        frame = frame.f_back


KIND = Kind(
    "connections", ("HF741", "HF742"), open_connections, patches, _not_checked, per_loop=True
)
