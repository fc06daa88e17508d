"""What the bridge needs of a graph, and what it sends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

__all__ = ["Graph", "Message"]

Message = dict[str, int]


class Graph(Protocol):
    """A compiled graph, as far as it is needed here."""

    @property
    def ainvoke(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def astream(self) -> Callable[..., AsyncIterator[Any]]: ...
