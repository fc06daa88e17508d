"""What of the network is still open when a program has ended.

A transport that is closing is on its way out, and one whose peer has closed has nobody left to
wait for; neither is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.explore.twins.network.kernel import Kernel
from holdfast.explore.twins.network.sockets import TwinSocket

__all__ = ["left_over", "silence"]


def left_over(kernel: Kernel) -> tuple[str, str, tuple[str, ...]] | None:
    """The code in the catalogue, what happened in a sentence, and the lines."""
    servers = [s for s in kernel.sockets.values() if s.listening and s.handed_over]
    if servers:
        message = f"still listening when the program has ended: {len(servers)} server(s)"
        return "HF741", message, tuple(_made(sock) for sock in servers)
    if kernel.dropped:
        message = f"dropped without being closed: {len(kernel.dropped)} transport(s)"
        return "HF742", message, tuple(_made(sock) for sock in kernel.dropped)
    transports = [sock for sock, transport in _transports(kernel) if _in_use(sock, transport)]
    if transports:
        message = f"open when the program has ended: {len(transports)} transport(s)"
        return "HF742", message, tuple(_made(sock) for sock in transports)
    return None


def silence(kernel: Kernel) -> None:
    """The run is over and judged: what is left may go without a word."""
    for _, transport in list(_transports(kernel)):
        transport._closing = True
        transport._conn_lost = 1
        transport._sock = None
        over = _over(transport)
        if over is not None:
            over._closed = True
    for sock in list(kernel.sockets.values()):
        if sock.real is not None:
            sock.real.close()
    kernel.sockets.clear()


def _transports(kernel: Kernel) -> Iterator[tuple[TwinSocket, Any]]:
    for fd, sock in kernel.sockets.items():
        transport = kernel.loop._transports.get(fd)
        if transport is not None:
            yield sock, transport


def _in_use(sock: TwinSocket, transport: Any) -> bool:
    over = _over(transport)
    closing = transport.is_closing() or (over is not None and over.is_closing())
    return not closing and sock.peer is not None and not sock.peer.closed


def _over(transport: Any) -> Any:
    """The transport of TLS on top of this one."""
    return getattr(transport.get_protocol(), "_app_transport", None)


def _made(sock: TwinSocket) -> str:
    return f"{sock.name}, made at {sock.origin or 'an unknown line'}"
