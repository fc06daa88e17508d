"""The part of Telegram's Bot API that the bot uses, on loopback: long polling, send and edit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from examples.captures.chat import Key

__all__ = ["BotApi", "bot_api"]

_ME = {"id": 1, "is_bot": True, "first_name": "handfast", "username": "handfast_bot"}


class BotApi:
    """The server side of a chat: what users have sent, and what the bot has posted."""

    def __init__(self) -> None:
        self.url = ""
        self.texts: dict[int, str] = {}
        """The current texts of the bot's messages, by number."""
        self._updates: list[dict[str, Any]] = []
        self._changed = asyncio.Condition()

    async def say(self, key: Key, *texts: str) -> None:
        """Send texts as a user; the bot receives them in one update."""
        async with self._changed:
            for text in texts:
                self._updates.append(_message(len(self._updates) + 1, key, text))
            self._changed.notify_all()

    async def shows(self, words: str) -> None:
        """Wait until one of the bot's messages contains `words`."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(words in each for each in self.texts.values()))

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one call of an API method."""
        method = request.match_info["method"]
        given = dict(await request.post())
        result: Any = True
        if method == "getMe":
            result = _ME
        elif method == "getUpdates":
            waits = str(given.get("timeout", "0")) != "0"
            result = await self._after(int(str(given.get("offset", 0))), waits)
        elif method == "sendMessage":
            result = await self._post(len(self.texts) + 1, given)
        elif method == "editMessageText":
            result = await self._post(int(str(given["message_id"])), given)
        return web.json_response({"ok": True, "result": result})

    async def _after(self, offset: int, waits: bool) -> list[dict[str, Any]]:
        async with self._changed:
            if waits:
                await self._changed.wait_for(lambda: len(self._updates) >= max(offset, 1))
            return [each for each in self._updates if each["update_id"] >= offset]

    async def _post(self, number: int, given: dict[str, Any]) -> dict[str, Any]:
        async with self._changed:
            self.texts[number] = str(given["text"])
            self._changed.notify_all()
        return {"message_id": number, "date": 0, "chat": {"id": 1, "type": "private"}}


def _message(number: int, key: Key, text: str) -> dict[str, Any]:
    message = {
        "message_id": 1000 + number,
        "date": 0,
        "chat": {"id": key.user, "type": "private"},
        "from": {"id": key.user, "is_bot": False, "first_name": "Alice"},
        "message_thread_id": key.thread,
        "text": text,
    }
    return {"update_id": number, "message": message}


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    """Run the server on a free port."""
    api = BotApi()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", api.answer)
    # Cancel the handler of a poll when the bot disconnects.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        api.url = f"http://{host}:{port}/bot"
        yield api
    finally:
        await runner.cleanup()
