"""The interface of a graph, and of the messages that it receives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

__all__ = ["Graph", "Message"]

Message = dict[str, int]


class Graph(Protocol):
    """What the bridge needs of a compiled graph."""

    @property
    def ainvoke(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def astream(self) -> Callable[..., AsyncIterator[Any]]: ...
