"""Where asyncio's transports expect a selector: a table of who watches which socket.

Nothing is ever selected here. Whoever is entered or removed is told to the socket, and the socket
posts what there is to tell.
"""

from __future__ import annotations

import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.explore.twins.network.kernel import Kernel

__all__ = ["Table"]


class Table:
    """The part of `selectors.BaseSelector` that `asyncio.selector_events` uses."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._keys: dict[int, selectors.SelectorKey] = {}

    def get_map(self) -> dict[int, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fd: int) -> selectors.SelectorKey:
        return self._keys[fd]

    def register(self, fd: int, events: int, data: Any) -> None:
        self._keys[fd] = selectors.SelectorKey(fd, fd, events, data)
        self._kernel.sockets[fd].watch(*data)

    modify = register

    def unregister(self, fd: int) -> None:
        del self._keys[fd]
        sock = self._kernel.sockets.get(fd)
        if sock is not None:  # it may have been closed under its watcher
            sock.watch(None, None)
