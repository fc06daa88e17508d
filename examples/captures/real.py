"""The bot with real parts: bash, and python-telegram-bot against a server on loopback.

Two commands arrive together, and the bot stops while they run.
"""

from __future__ import annotations

from typing import Protocol

from examples.captures import as_proposed as proposed
from examples.captures import as_reported as reported
from examples.captures import fixed as fixed_version
from examples.captures.bot_api import bot_api
from examples.captures.chat import Chat, Key
from examples.captures.shell import Run, run
from examples.captures.telegram_bot import TelegramChat, application, polling

__all__ = ["as_proposed", "as_reported", "fixed"]

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


async def fixed() -> str:
    return await _two_at_once(fixed_version.Captures)
