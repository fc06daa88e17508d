"""The interfaces of an automator: a session that reads channels, and a sheet that stores rows."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeAlias

__all__ = ["Connect", "Rows", "Session", "Sheet"]

Rows: TypeAlias = list[str]


class Session(Protocol):
    """Reads channels over the network. Must be closed on the loop on which it was created."""

    async def rows(self, channel: str) -> Rows:
        """The rows of a channel."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Sheet(Protocol):
    """A sheet with a blocking API: it is written to in a thread."""

    def append(self, rows: Rows) -> int:
        """Append rows and return their number."""
        ...


Connect: TypeAlias = Callable[[], Session]
