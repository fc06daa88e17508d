"""What came out of one file, and which other files that depends on."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.check.finding import Finding
from holdfast.check.report import Trouble

__all__ = ["Result"]


@dataclass(slots=True)
class Result:
    """One file, checked."""

    path: str
    findings: tuple[Finding, ...] = ()
    broken: tuple[Trouble, ...] = ()
    asked: dict[str, str] = field(default_factory=dict)
    """The other modules that a rule asked for, each with the digest of its content."""
    ended: dict[str, int] = field(default_factory=dict)
    """The attribute names that a rule asked for, each with the number of files that end it."""
