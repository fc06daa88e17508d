"""What a phase needs of a search engine: a session, and the answer to a query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

__all__ = ["Search", "Session"]


class Session(Protocol):
    """A session of an HTTP client, as far as searching goes."""

    async def find(self, query: str) -> str:
        """The answer to a query."""
        ...


Search = Callable[[], AbstractAsyncContextManager[Session]]
"""Opens a session."""
