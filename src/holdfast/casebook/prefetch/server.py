"""A server on loopback: it serves channels and takes the rows of a sheet.

A channel that is held back is answered only when it is let go: who asks for it waits until then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from aiohttp import web

from holdfast.casebook.prefetch.outside import Rows

__all__ = ["Server", "serving"]


class Server:
    """What was asked for, what was sent to the sheet, and who still waits."""

    def __init__(self, channels: Collection[str], held_back: Collection[str] = ()) -> None:
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.sheet: Rows = []
        self.waiting = asyncio.Semaphore(0)
        """Released for each one who begins to wait for a channel that is held back."""
        self.let_go = asyncio.Event()
        self._channels = channels
        self._held_back = held_back

    async def channel(self, request: web.Request) -> web.Response:
        """Three rows of a channel, if there is one of that name."""
        name = request.match_info["name"]
        self.asked[name] += 1
        if name not in self._channels:
            raise web.HTTPNotFound
        if name in self._held_back:
            self.waiting.release()
            await self.let_go.wait()
        return web.json_response([f"{name} {number}" for number in (1, 2, 3)])

    async def append(self, request: web.Request) -> web.Response:
        """Rows for the sheet; how many there were."""
        rows: Rows = await request.json()
        self.sheet += rows
        return web.json_response(len(rows))


@asynccontextmanager
async def serving(
    channels: Collection[str], held_back: Collection[str] = ()
) -> AsyncIterator[Server]:
    """A server for as long as the block runs."""
    server = Server(channels, held_back)
    app = web.Application()
    app.router.add_get("/channels/{name}", server.channel)
    app.router.add_post("/sheet", server.append)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        server.let_go.set()
        await runner.cleanup()
