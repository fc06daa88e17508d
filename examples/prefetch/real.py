"""The three versions with a server on loopback, as synchronous programs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from examples.prefetch import as_proposed as proposed
from examples.prefetch import as_reported as reported
from examples.prefetch import fixed as fixed_version
from examples.prefetch.cleanup import close_at_exit
from examples.prefetch.interfaces import Connect, Sheet
from examples.prefetch.server import serving
from examples.prefetch.session import HttpSession
from examples.prefetch.sheet import HttpSheet

__all__ = ["as_proposed", "as_reported", "fixed"]

_CHANNELS = ("news", "sport", "weather")
_Main = Callable[[Connect, Sheet, Sequence[str], int], int]


async def _run(main: _Main) -> str:
    """The program has enough rows before the next channels have answered."""
    async with serving(_CHANNELS, held_back=_CHANNELS[1:]) as server:
        connect = close_at_exit(lambda: HttpSession(server.url))
        try:
            written = await asyncio.to_thread(main, connect, HttpSheet(server.url), _CHANNELS, 3)
            said = f"The program reports {written} written rows"
        except TypeError as error:
            said = f"The program ends with TypeError: {error}"
        return f"{said}; the sheet has {len(server.sheet)}."


async def as_reported() -> str:
    """The program ends while two channels are being fetched."""
    return await _run(reported.main)


async def as_proposed() -> str:
    """The program fails at the first channel."""
    return await _run(proposed.main)


async def fixed() -> str:
    """The program ends at the same point, and nothing leaks."""
    return await _run(fixed_version.main)
