"""The three programs with a server on loopback. Each is a program that is not async, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.casebook.prefetch import as_it_should_be as should_be
from holdfast.casebook.prefetch import as_proposed as proposed
from holdfast.casebook.prefetch import as_reported as reported
from holdfast.casebook.prefetch.outside import Connect, Sheet
from holdfast.casebook.prefetch.put_away import put_away_later
from holdfast.casebook.prefetch.server import serving
from holdfast.casebook.prefetch.session import HttpSession
from holdfast.casebook.prefetch.sheet import HttpSheet

__all__ = ["as_it_should_be", "as_proposed", "as_reported"]

_CHANNELS = ("news", "sport", "weather")
_Main = Callable[[Connect, Sheet, Sequence[str], int], int]


async def _run(main: _Main) -> str:
    """The program has all that it wants before the channels that come next have answered."""
    async with serving(_CHANNELS, held_back=_CHANNELS[1:]) as server:
        connect = put_away_later(lambda: HttpSession(server.url))
        try:
            written = await asyncio.to_thread(main, connect, HttpSheet(server.url), _CHANNELS, 3)
            said = f"The program says that {written} rows are written"
        except TypeError as error:
            said = f"The program ends with TypeError: {error}"
        return f"{said}; {len(server.sheet)} stand in the sheet."


async def as_reported() -> str:
    """It ends while two channels are being fetched."""
    return await _run(reported.main)


async def as_proposed() -> str:
    """It ends at the first channel."""
    return await _run(proposed.main)


async def as_it_should_be() -> str:
    """It ends as reported, and nothing of it is left."""
    return await _run(should_be.main)
