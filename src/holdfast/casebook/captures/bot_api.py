"""Telegram's Bot API as far as the bot goes, on loopback: updates by long polling, send and edit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from holdfast.casebook.captures.chat import Key

__all__ = ["BotApi", "bot_api"]

_ME = {"id": 1, "is_bot": True, "first_name": "holdfast", "username": "holdfast_bot"}


class BotApi:
    """The server's side of a chat: what people have said, and what the bot has posted."""

    def __init__(self) -> None:
        self.url = ""
        self.texts: dict[int, str] = {}
        """The bot's messages as they are now, by number."""
        self._updates: list[dict[str, Any]] = []
        self._changed = asyncio.Condition()

    async def say(self, key: Key, *texts: str) -> None:
        """Somebody says something; several at once arrive in one answer to the bot."""
        async with self._changed:
            for text in texts:
                self._updates.append(_message(len(self._updates) + 1, key, text))
            self._changed.notify_all()

    async def shows(self, words: str) -> None:
        """Wait until one of the bot's messages has these words."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(words in each for each in self.texts.values()))

    async def answer(self, request: web.Request) -> web.Response:
        """One call of a method of the API."""
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
    said = {
        "message_id": 1000 + number,
        "date": 0,
        "chat": {"id": key.user, "type": "private"},
        "from": {"id": key.user, "is_bot": False, "first_name": "somebody"},
        "message_thread_id": key.thread,
        "text": text,
    }
    return {"update_id": number, "message": said}


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    """A server on a free port."""
    api = BotApi()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", api.answer)
    # A poll that nobody waits for any more is over.
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
