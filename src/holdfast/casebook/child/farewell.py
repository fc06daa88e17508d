"""What a child is sent, and how it ended: its exit, and the end of what it wrote to stderr."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import holdfast

__all__ = ["ChildGone", "Farewell", "Message"]

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Farewell:
    """What is known of a child that has ended.

    >>> print(Farewell.of(-9, "reading\\nsaving"))
    killed by SIGKILL, its last line 'saving'
    """

    status: holdfast.ExitStatus
    words: str
    """The end of its stderr."""

    @classmethod
    def of(cls, returncode: int | None, words: str) -> Self:
        """From a return code, as asyncio gives it."""
        return cls(holdfast.ExitStatus.of(returncode), words)

    @property
    def last_line(self) -> str:
        return self.words.rstrip().rpartition("\n")[2].strip()

    def __str__(self) -> str:
        return f"{self.status}, its last line {self.last_line!r}"


class ChildGone(ConnectionError):
    """The child went away before it had answered."""

    def __init__(self, farewell: Farewell | None) -> None:
        super().__init__(f"the child was gone before it answered: {farewell or 'ended by another'}")
        self.farewell = farewell
