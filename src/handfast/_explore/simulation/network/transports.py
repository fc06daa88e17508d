"""asyncio's own transport over a simulated socket, which notices that it is dropped.

A `StreamWriter` that is garbage-collected while open closes its transport with a warning. In an
explored run it is a finding, with the line that created the connection.
"""

from __future__ import annotations

import sys
from asyncio import selector_events, streams
from typing import Any

_STOCK: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
_DROPPED = streams.StreamWriter.__del__.__code__


class FakeTransport(_STOCK):  # type: ignore[misc]
    """The transport of one side of a connection."""

    _complete = False

    def __init__(self, *args: Any, **context: Any) -> None:
        super().__init__(*args, **context)
        self._complete = True

    def is_closing(self) -> bool:
        if not self._closing and sys._getframe(1).f_code is _DROPPED:
            self._sock.dropped()
            self.close()
        return bool(self._closing)

    def __del__(self) -> None:
        # In a reference cycle, or half created because its server was closed meanwhile: no finding.
        if self._complete:
            super().__del__(_warn=_quiet)
        elif self._sock is not None:
            self._sock.close()


def _quiet(*args: Any, **options: Any) -> None:
    """Replaces `warnings.warn`."""
