"""What a bot needs of a chat: to send a message, and to edit it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Chat", "Key"]


class Key(NamedTuple):
    """Whose capture it is: there is one for each."""

    user: int
    thread: int


class Chat(Protocol):
    """A chat, as far as captures go."""

    async def send(self, key: Key, text: str) -> int:
        """Post a message; its number."""
        ...

    async def edit(self, key: Key, message: int, text: str) -> None:
        """Give a message another text."""
        ...
