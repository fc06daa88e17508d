"""The results of a check, of one file and of all files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from handfast._check.finding import Finding, Span
from handfast._check.settings.selection import BROKEN


@dataclass(frozen=True, slots=True, order=True)
class FileError:
    """A file that could not be checked, in whole or in part."""

    path: str
    line: int
    why: str
    is_internal: bool = False
    """Whether a bug in handfast is the cause, and not the file."""
    python: str = ""
    """The Python that can read the file, if the running one is too old."""

    def as_finding(self) -> Finding:
        """Convert it into a finding, for output that lists both."""
        return Finding(BROKEN, self.why, Span(self.path, self.line, 1, self.line, 1))


@dataclass(slots=True)
class FileResult:
    """The result of one file."""

    path: str
    findings: tuple[Finding, ...] = ()
    broken: tuple[FileError, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)
    """The other modules that the result depends on, with the digests of their content."""
    ended: dict[str, int] = field(default_factory=dict)
    """The attribute names that it depends on, with the numbers of files that end them."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all files, sorted by place."""

    findings: tuple[Finding, ...] = ()
    broken: tuple[FileError, ...] = ()
    paths: tuple[str, ...] = ()
    """The files that were checked."""
    not_checked: tuple[str, ...] = ()
    """Notebooks that were given by name."""
    texts: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The text of the files that findings point to, by path, as it was checked."""

    functions: int = 0
    """The number of functions in the files that have asyncio code."""
    creations: int = 0
    """The number of places that create a task."""
    hidden: int | None = None
    """How many findings `--pedantic` would add to none; None if they were not counted."""

    @property
    def files(self) -> int:
        """The number of files that were checked."""
        return len(self.paths)

    @property
    def clean(self) -> bool:
        """Whether there are no findings, and every file could be checked."""
        return not self.findings and not self.broken

    @property
    def everything(self) -> tuple[Finding, ...]:
        """The findings, and a finding for each file that could not be checked.

        Files that need a newer Python are one finding: a project may be written for it.
        """
        newer = sorted(each for each in self.broken if each.python)
        broken = [each for each in self.broken if not each.python]
        if newer:
            broken.append(_of_many(newer) if len(newer) > 1 else newer[0])
        found = (*self.findings, *(each.as_finding() for each in broken))
        return tuple(sorted(found, key=lambda each: (each.place, each.code, each.message)))

    @property
    def causes(self) -> tuple[tuple[Finding, ...], ...]:
        """`everything`, with the findings of one cause together, in the order of their first places.

        One cause: the same code and confidence, in one package, and the same message, or the same
        idiom where a rule says so.
        """
        groups: dict[object, list[Finding]] = {}
        for each in self.everything:
            key = (each.code, each.confidence, each.cause) if each.cause else id(each)
            groups.setdefault(key, []).append(each)
        return tuple(map(tuple, groups.values()))


def _of_many(newer: list[FileError]) -> FileError:
    python = max((each.python for each in newer), key=lambda each: [*map(int, each.split("."))])
    here = ".".join(map(str, sys.version_info[:2]))
    why = (
        f"{len(newer):,} files were not checked, this one and others: Python {here} cannot parse "
        f"them, run handfast with Python {python}"
    )
    return replace(newer[0], why=why)
