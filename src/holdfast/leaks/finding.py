"""A leak as people are told of it: what is left, whose it is, where it was born, where it stands.

Words only: a finding outlives the thing, and keeps nothing alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast import catalogue
from holdfast.catalogue import BugKind
from holdfast.census import Thing
from holdfast.leaks.place import Place
from holdfast.origin import Origin

__all__ = ["MADE_FOR", "Leak", "LeakError", "in_full"]

# Stands in the name of an owner that outlives a test, before the test that it was made for.
MADE_FOR = ", made for "


class Leak(Exception):
    """One thing that was left behind."""

    def __init__(
        self,
        code: str,
        what: str,
        *,
        check: str,
        owner: str = "",
        born: Origin | Place | None = None,
        near: Origin | Place | None = None,
        stands: tuple[str, ...] = (),
    ) -> None:
        super().__init__(code, what)
        self.code = code
        self.what = what
        self.check = check
        self.owner = owner
        """The test or the fixture that it belongs to; empty where there is none."""
        self.born = born
        """The line of the program that made it; None if nobody saw that."""
        self.near = near
        """The line that made it for the program, where that is a library's."""
        self.stands = stands
        """Where it stands now, the innermost line last."""

    @classmethod
    def of(cls, thing: Thing, owner: str = "", code: str | None = None) -> Leak:
        """The finding for a thing that is alive."""
        birth = thing.birth
        near = birth.near if birth is not None and birth.near != birth.origin else None
        return cls(
            code or thing.code,
            thing.what,
            check=thing.check,
            owner=owner,
            born=birth.origin if birth is not None else None,
            near=near,
            stands=thing.stands(),
        )

    @property
    def kind(self) -> BugKind:
        """Its page in the catalogue."""
        return catalogue.kind(self.code)

    @property
    def place(self) -> str:
        """Where it was born, in words."""
        return str(self.born) if self.born else "at a place that nobody saw"

    def __str__(self) -> str:
        lines = [f"{self.code} {self.kind.name}: {self.what}"]
        if self.owner:
            lines.append(f"    left by    {self.owner}")
        lines.append(f"    born       {self.place}")
        if self.born and self.born.source:
            lines.append(f"                   {self.born.source}")
        if self.near:
            lines.append(f"    made by    {self.near}")
        lines += [
            f"    {'stands at' if at == 0 else '':<10} {line}"
            for at, line in enumerate(self.stands)
        ]
        return "\n".join(lines)


class LeakError(ExceptionGroup[Leak]):
    """What was left behind, all of it."""

    def __new__(cls, leaks: Sequence[Leak]) -> LeakError:
        return super().__new__(cls, _headline(leaks), leaks)

    def __init__(self, leaks: Sequence[Leak]) -> None:
        super().__init__(_headline(leaks), leaks)

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The findings."""
        return self.exceptions  # type: ignore[return-value]

    def derive(self, excs: Sequence[Exception]) -> ExceptionGroup[Exception]:  # type: ignore[override]
        return LeakError(excs)  # type: ignore[arg-type]


def in_full(leaks: Sequence[Leak]) -> str:
    """All that is known of them, under one headline."""
    return "\n".join([_headline(leaks), *map(str, leaks)])


def _headline(leaks: Sequence[Leak]) -> str:
    things = "1 thing is" if len(leaks) == 1 else f"{len(leaks)} things are"
    kinds = Counter(f"{leak.code} {leak.kind.name}" for leak in leaks)
    names = (name if count == 1 else f"{count} x {name}" for name, count in kinds.items())
    return f"{things} left behind: {', '.join(names)}"
