"""A session that reads channels over HTTP, with aiohttp."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import aiohttp

from examples.prefetch.interfaces import Rows

__all__ = ["HttpSession"]


class HttpSession:
    """Reads the channels of a server. Create it on the loop on which it is used."""

    def __init__(self, url: str) -> None:
        self._http = aiohttp.ClientSession(url)

    @property
    def closed(self) -> bool:
        """Whether the session is closed."""
        return self._http.closed

    async def rows(self, channel: str) -> Rows:
        """The rows of a channel."""
        async with self._http.get(f"/channels/{channel}", raise_for_status=True) as response:
            rows: Rows = await response.json()
            return rows

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.close()
