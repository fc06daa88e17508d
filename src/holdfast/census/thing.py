"""Something that is alive: what it is called, where it was made, where it stands now.

One class for each kind derives from this, in the file of its check. Nothing is formatted before
somebody reads it.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Hashable

from holdfast.census.birth import Birth

__all__ = ["Thing"]


class Thing:
    """One thing that is alive now."""

    __slots__ = ("birth", "loop")

    check: str = ""
    """The check that sees it: `tasks`, `timers`..."""

    def __init__(self, birth: Birth | None, loop: AbstractEventLoop | None = None) -> None:
        self.birth = birth
        self.loop = loop

    @property
    def owner(self) -> object:
        """Whoever it belongs to; None if nobody saw it being made."""
        return self.birth.owner if self.birth is not None else None

    @property
    def key(self) -> Hashable:
        """The same for the same thing in every census."""
        raise NotImplementedError

    @property
    def code(self) -> str:
        """The code of the catalogue that it has if it is left over."""
        raise NotImplementedError

    @property
    def what(self) -> str:
        """What it is, in a few words."""
        raise NotImplementedError

    def stands(self) -> tuple[str, ...]:
        """Where it stands now, the innermost line last; empty if that has no meaning."""
        return ()

    def over(self) -> bool:
        """Whether it has ended meanwhile."""
        raise NotImplementedError

    @property
    def part_of(self) -> Hashable | None:
        """The key of the thing that it is only a part of, and goes away with."""
        return None

    @property
    def passing(self) -> bool:
        """Whether it ends by itself, and nobody has to see to it."""
        return False

    def __repr__(self) -> str:
        return f"<{self.code} {self.what}>"
