"""The bot, on python-telegram-bot: a message that begins with `!` is a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from telegram import Bot, Update
from telegram.ext import Application, MessageHandler, filters

from examples.captures.chat import Key

__all__ = ["TelegramChat", "polling"]

AnyApplication = Application[Any, Any, Any, Any, Any, Any]


class _Commands(Protocol):
    async def command(self, key: Key, command: str) -> object: ...


class TelegramChat:
    """A Telegram chat."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def send(self, key: Key, text: str) -> int:
        return (await self._bot.send_message(key.user, text)).message_id

    async def edit(self, key: Key, message: int, text: str) -> None:
        await self._bot.edit_message_text(text, chat_id=key.user, message_id=message)


def application(url: str) -> AnyApplication:
    """A bot whose handlers run concurrently, as is usual."""
    return Application.builder().token("1:loopback").base_url(url).concurrent_updates(True).build()


@asynccontextmanager
async def polling(app: AnyApplication, captures: _Commands) -> AsyncIterator[None]:
    """Pass commands to `captures` while the block runs."""

    async def handle(update: Update, _: object) -> None:
        said = update.message
        if said is not None and said.text is not None and said.from_user is not None:
            key = Key(said.from_user.id, said.message_thread_id or 0)
            await captures.command(key, said.text.removeprefix("!"))

    app.add_handler(MessageHandler(filters.Regex("^!"), handle))
    async with app:
        await app.start()
        assert app.updater is not None
        await app.updater.start_polling(poll_interval=0)
        try:
            yield
        finally:
            await app.updater.stop()
            await app.stop()
