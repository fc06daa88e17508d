"""asyncio's own transport over a twin, and one thing more: it notices that it is dropped.

A `StreamWriter` that nobody closed closes its transport when it goes, with a warning. In a run
that is a finding with a line instead: the program has let go of a connection.
"""

from __future__ import annotations

import sys
from asyncio import selector_events, streams
from typing import Any

__all__ = ["TwinTransport"]

_STOCK: Any = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
_DROPPED = streams.StreamWriter.__del__.__code__


class TwinTransport(_STOCK):  # type: ignore[misc]
    """The transport of one side of a connection."""

    _made = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._made = True

    def is_closing(self) -> bool:
        if not self._closing and sys._getframe(1).f_code is _DROPPED:
            self._sock.dropped()
            self.close()
        return bool(self._closing)

    def __del__(self) -> None:
        # Only in a cycle, or half made because its server was closed meanwhile: no finding.
        if self._made:
            super().__del__(_warn=_quiet)
        elif self._sock is not None:
            self._sock.close()


def _quiet(*args: Any, **options: Any) -> None:
    """Instead of a warning."""
