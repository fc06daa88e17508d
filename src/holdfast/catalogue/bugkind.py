"""What a bug kind is, and the error for a code that nobody has given out.

Only shapes live here; the kinds themselves stand in one file for each family.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BugKind", "UnknownCode"]


@dataclass(frozen=True, slots=True)
class BugKind:
    """One kind of bug: what every detector calls it, and what its page says.

    `summary` is one sentence (what it is), `why` two to five (what it does to you). `wrong` and
    `right` are whole modules with the same names in them, so one probe can drive both.

    >>> from holdfast.catalogue import kind
    >>> kind("HF101").name
    'task-dropped'
    """

    code: str
    name: str
    family: str
    summary: str
    why: str
    wrong: str
    right: str
    fine: str = ""
    """When it is right to ignore what `check` says of it; empty where `check` has no rule."""


class UnknownCode(LookupError):
    """No kind has this code; `near` holds the kinds whose code or name looks most like it.

    >>> from holdfast.catalogue import kind
    >>> kind("HF1O1")
    Traceback (most recent call last):
    holdfast.catalogue.bugkind.UnknownCode: no bug kind is called 'HF1O1'; near: HF101 task-dropped, ...
    """

    def __init__(self, code: str, near: tuple[BugKind, ...] = ()) -> None:
        self.code = code
        self.near = near
        message = f"no bug kind is called {code!r}"
        if near:
            message += "; near: " + ", ".join(f"{kind.code} {kind.name}" for kind in near)
        super().__init__(message)
