"""The bot with its real parts: a real bash, and python-telegram-bot against a server on loopback.

Two commands arrive together, and the bot stops while they run.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.casebook.captures import as_it_should_be as should_be
from holdfast.casebook.captures import as_proposed as proposed
from holdfast.casebook.captures import as_reported as reported
from holdfast.casebook.captures.bot_api import bot_api
from holdfast.casebook.captures.chat import Chat, Key
from holdfast.casebook.captures.shell import Run, run
from holdfast.casebook.captures.telegram_bot import TelegramChat, application, polling

__all__ = ["as_it_should_be", "as_proposed", "as_reported"]

_ALICE = Key(user=1, thread=7)


class _Captures(Protocol):
    def __init__(self, chat: Chat, run: Run) -> None: ...
    def __len__(self) -> int: ...
    async def command(self, key: Key, command: str) -> None: ...
    async def close(self) -> object: ...


async def _two_at_once(kind: type[_Captures]) -> str:
    async with bot_api() as api:
        app = application(api.url)
        captures = kind(TelegramChat(app.bot), run)
        async with polling(app, captures):
            await api.say(_ALICE, "!echo first; sleep 60", "!echo second; sleep 60")
            await api.shows("second\n")
            tracked = len(captures)
            await captures.close()
    outputs = sum("\n" in text for text in api.texts.values())
    return f"2 commands at once: {outputs} with output, {tracked} tracked when the bot stopped"


async def as_reported() -> str:
    return await _two_at_once(reported.Captures)


async def as_proposed() -> str:
    return await _two_at_once(proposed.Captures)


async def as_it_should_be() -> str:
    return await _two_at_once(should_be.Captures)
