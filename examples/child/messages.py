"""The messages of a child, and how it ended: its exit status and the end of its stderr."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import handfast

__all__ = ["ChildExit", "ChildGone", "Message"]

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChildExit:
    """How a child ended.

    >>> print(ChildExit.of(-9, "reading\\nsaving"))
    killed by SIGKILL, its last line 'saving'
    """

    status: handfast.types.ExitStatus
    stderr: str
    """The end of its stderr."""

    @classmethod
    def of(cls, returncode: int | None, stderr: str) -> Self:
        """From a return code of asyncio."""
        return cls(handfast.types.ExitStatus.of(returncode), stderr)

    @property
    def last_line(self) -> str:
        return self.stderr.rstrip().rpartition("\n")[2].strip()

    def __str__(self) -> str:
        return f"{self.status}, its last line {self.last_line!r}"


class ChildGone(ConnectionError):
    """The child ended before it answered."""

    def __init__(self, child_exit: ChildExit | None) -> None:
        super().__init__(
            f"the child ended before it answered: {child_exit or 'ended by another call'}"
        )
        self.child_exit = child_exit
