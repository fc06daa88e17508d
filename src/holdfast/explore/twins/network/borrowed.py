"""What the stock loop does with a socket that cannot block, as it is: asyncio's own functions.

They get at the outside through `_selector` and through the sockets' methods only. Both are twins
here, so their semantics, version by version, come for free.
"""

from __future__ import annotations

import asyncio
from asyncio import base_events, selector_events
from typing import Any

__all__ = ["Borrowed"]

_SELECTOR: Any = selector_events.BaseSelectorEventLoop
_STOCK: Any = asyncio.SelectorEventLoop


class Borrowed:
    """The private half of `BaseSelectorEventLoop`, without its selector and its self-pipe."""

    _make_ssl_transport = _STOCK._make_ssl_transport
    _start_serving = _STOCK._start_serving
    # The one for POSIX looks for the files of real sockets.
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
    # By hand, chunk by chunk; there is no system call to do it.
    sendfile: Any = base_events.BaseEventLoop.sendfile
