"""What an automator needs of the outside: a session that reads channels, and a sheet that takes rows."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeAlias

__all__ = ["Connect", "Rows", "Session", "Sheet"]

Rows: TypeAlias = list[str]


class Session(Protocol):
    """Channels, read over the network. It has to be closed, on the loop that it was made on."""

    async def rows(self, channel: str) -> Rows:
        """What stands in a channel."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class Sheet(Protocol):
    """A sheet, of a library that blocks: it is written to in a thread."""

    def append(self, rows: Rows) -> int:
        """Write rows at the end; how many there were."""
        ...


Connect: TypeAlias = Callable[[], Session]
