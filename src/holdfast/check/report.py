"""What came out of a check: the findings, what could not be read, what was left alone."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.check.finding import Finding, Place
from holdfast.check.selection import BROKEN

__all__ = ["Report", "Trouble"]


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """A file that could not be checked, in whole or in part."""

    path: str
    line: int
    why: str

    def as_finding(self) -> Finding:
        """The same, for those who list everything in one form."""
        return Finding(BROKEN, self.why, Place(self.path, self.line, 1, self.line, 1))


@dataclass(frozen=True, slots=True)
class Report:
    """All of it, sorted by place."""

    findings: tuple[Finding, ...] = ()
    broken: tuple[Trouble, ...] = ()
    paths: tuple[str, ...] = ()
    """The files that were looked at."""
    not_checked: tuple[str, ...] = ()
    """Named, but none of ours: notebooks."""
    stdin: str | None = None
    """What was read from the standard input, if that was asked for."""

    @property
    def files(self) -> int:
        """How many files were looked at."""
        return len(self.paths)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to say."""
        return not self.findings and not self.broken

    @property
    def everything(self) -> tuple[Finding, ...]:
        """The findings, and the files that could not be read among them."""
        found = (*self.findings, *(each.as_finding() for each in self.broken))
        return tuple(sorted(found, key=lambda each: (each.place, each.code, each.message)))
