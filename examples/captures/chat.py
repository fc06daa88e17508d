"""The interface of a chat: send a message, and edit it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

__all__ = ["Chat", "Key"]


class Key(NamedTuple):
    """Identifies a capture: each user has one in each thread."""

    user: int
    thread: int


class Chat(Protocol):
    """What a capture needs of a chat."""

    async def send(self, key: Key, text: str) -> int:
        """Post a message and return its number."""
        ...

    async def edit(self, key: Key, message: int, text: str) -> None:
        """Replace the text of a message."""
        ...
