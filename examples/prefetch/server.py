"""A server on loopback that serves channels and stores the rows of a sheet.

A request for a channel that is held back is answered only after `let_go` is set.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from aiohttp import web

from examples.prefetch.interfaces import Rows

__all__ = ["Server", "serving"]


class Server:
    """Records the requests and the rows of the sheet."""

    def __init__(self, channels: Collection[str], held_back: Collection[str] = ()) -> None:
        self.url = ""
        self.requested: Counter[str] = Counter()
        self.sheet: Rows = []
        self.waiting = asyncio.Semaphore(0)
        """Released once for each request that begins to wait for a channel that is held back."""
        self.let_go = asyncio.Event()
        self._channels = channels
        self._held_back = held_back

    async def channel(self, request: web.Request) -> web.Response:
        """Return three rows of a channel."""
        name = request.match_info["name"]
        self.requested[name] += 1
        if name not in self._channels:
            raise web.HTTPNotFound
        if name in self._held_back:
            self.waiting.release()
            await self.let_go.wait()
        return web.json_response([f"{name} {number}" for number in (1, 2, 3)])

    async def append(self, request: web.Request) -> web.Response:
        """Append rows to the sheet and return their number."""
        rows: Rows = await request.json()
        self.sheet += rows
        return web.json_response(len(rows))


@asynccontextmanager
async def serving(
    channels: Collection[str], held_back: Collection[str] = ()
) -> AsyncIterator[Server]:
    """Run the server while the block runs."""
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
