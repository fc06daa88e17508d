"""A search engine on loopback and its client session, both with aiohttp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
from aiohttp import web

import handfast
from examples.phases.search import Search, Session

__all__ = ["search_engine"]


@asynccontextmanager
async def search_engine() -> AsyncIterator[Search]:
    """Serve while the block runs; yields the function that opens a session.

    Shielded: a cancellation during `start` would lose the listening socket.
    """
    app = web.Application()
    app.router.add_get("/", _answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        await handfast.shielded(web.TCPSite(runner, "127.0.0.1", 0).start())
        host, port = runner.addresses[0]
        yield partial(_session, f"http://{host}:{port}/")
    finally:
        await handfast.shielded(runner.cleanup())


async def _answer(request: web.Request) -> web.Response:
    query = request.query["q"]
    if "endless" in query:
        await asyncio.sleep(60)
    return web.Response(text=f"pages about {query}")


class _AiohttpSession:
    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client

    async def find(self, query: str) -> str:
        async with self._client.get("", params={"q": query}) as response:
            return await response.text()


@asynccontextmanager
async def _session(url: str) -> AsyncIterator[Session]:
    async with aiohttp.ClientSession(url) as client:
        yield _AiohttpSession(client)
