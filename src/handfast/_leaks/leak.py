"""`Leak` and `LeakError`: what leaked, whose it is, where it was created, where it waits.

Text only: a leak outlives the object and keeps nothing alive. `to_data` and `from_data` carry it
from a worker of pytest-xdist to the process that prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from handfast import catalogue
from handfast._census import LiveObject
from handfast._origin import Origin
from handfast.catalogue import BugKind

MADE_FOR = ", made for "
"""In the name of an owner that outlives a test, before the test that it was made for."""

_FIELDS = ("code", "what", "check", "owner", "created_at", "created_via", "waiting_at")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """An `Origin` without its code object, which cannot be sent to another process.

    >>> here = Origin.here()
    >>> str(CodeLine.of(here)) == str(here)
    True
    """

    text: str
    """As the origin is shown in its own process."""
    filename: str
    lineno: int
    function: str
    source: str = ""

    @classmethod
    def of(cls, origin: Origin | CodeLine) -> CodeLine:
        """The same line, without the code object."""
        return cls(str(origin), origin.filename, origin.lineno, origin.function, origin.source)

    def __str__(self) -> str:
        return self.text


class Leak(Exception):
    """One object that leaked."""

    def __init__(
        self,
        code: str,
        what: str,
        *,
        check: str,
        owner: str = "",
        created_at: Origin | CodeLine | None = None,
        created_via: Origin | CodeLine | None = None,
        waiting_at: tuple[str, ...] = (),
    ) -> None:
        super().__init__(code, what)
        self.code = code
        self.what = what
        self.check = check
        self.owner = owner
        """The test or fixture that it belongs to; empty if there is none."""
        self.created_at = created_at
        """The line of the program that created it; None if that was not recorded."""
        self.created_via = created_via
        """The line of a library that created it for the program, if there is one."""
        self.waiting_at = waiting_at
        """The lines where it waits, innermost last."""

    @classmethod
    def of(cls, live: LiveObject, owner: str = "") -> Leak:
        """The leak of a live object."""
        creation = live.creation
        via = creation.via if creation is not None and creation.via != creation.origin else None
        return cls(
            live.code,
            live.what,
            check=live.check,
            owner=owner,
            created_at=creation.origin if creation is not None else None,
            created_via=via,
            waiting_at=live.waiting_at(),
        )

    def replace(self, **changes: Any) -> Leak:
        """A copy with other values for some fields."""
        return Leak(**{**self._fields(), **changes})

    def _fields(self) -> dict[str, Any]:
        # Not vars(): that may have `__notes__`.
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def kind(self) -> BugKind:
        """Its page in the catalogue."""
        return catalogue.kind(self.code)

    @property
    def place(self) -> str:
        """The line that created it, as text."""
        return str(self.created_at) if self.created_at else "an unknown line"

    def __str__(self) -> str:
        lines = [f"{self.code} {self.kind.name}: {self.what}"]
        if self.owner:
            lines.append(f"    left by     {self.owner}")
        lines.append(f"    created at  {self.place}")
        if self.created_at and self.created_at.source:
            lines.append(f"                    {self.created_at.source}")
        if self.created_via:
            lines.append(f"    via         {self.created_via}")
        lines += [
            f"    {'waiting at' if at == 0 else '':<10}  {line}"
            for at, line in enumerate(self.waiting_at)
        ]
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The leak as JSON can hold it."""
        lines = {"created_at": _to_data(self.created_at), "created_via": _to_data(self.created_via)}
        return {**self._fields(), **lines, "waiting_at": list(self.waiting_at)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Leak:
        """The leak that `to_data` was called on; it reads the same."""
        lines = {name: _from_data(data[name]) for name in ("created_at", "created_via")}
        return cls(**{**data, **lines, "waiting_at": tuple(data["waiting_at"])})


def _to_data(line: Origin | CodeLine | None) -> dict[str, Any] | None:
    return None if line is None else asdict(CodeLine.of(line))


def _from_data(data: Mapping[str, Any] | None) -> CodeLine | None:
    return None if data is None else CodeLine(**data)


class LeakError(ExceptionGroup[Leak]):
    """All leaks of a block."""

    def __new__(cls, leaks: Sequence[Leak]) -> LeakError:
        return super().__new__(cls, _headline(leaks), leaks)

    def __init__(self, leaks: Sequence[Leak]) -> None:
        super().__init__(_headline(leaks), leaks)

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The leaks."""
        return self.exceptions  # type: ignore[return-value]

    def derive(self, excs: Sequence[Exception]) -> ExceptionGroup[Exception]:  # type: ignore[override]
        return LeakError(excs)  # type: ignore[arg-type]


def full_text(leaks: Sequence[Leak]) -> str:
    """All leaks, under one headline."""
    return "\n".join([_headline(leaks), *map(str, leaks)])


def _headline(leaks: Sequence[Leak]) -> str:
    number = "1 leak" if len(leaks) == 1 else f"{len(leaks)} leaks"
    kinds = Counter(f"{leak.code} {leak.kind.name}" for leak in leaks)
    names = (name if count == 1 else f"{count} x {name}" for name, count in kinds.items())
    return f"{number}: {', '.join(names)}"
