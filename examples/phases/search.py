"""The interface of a search engine: a session, and the answer to a query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

__all__ = ["Search", "Session"]


class Session(Protocol):
    """What a phase needs of an HTTP session."""

    async def find(self, query: str) -> str:
        """Return the answer to a query."""
        ...


Search = Callable[[], AbstractAsyncContextManager[Session]]
"""Opens a session."""
