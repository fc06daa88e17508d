"""A finding of a rule: the place, what is wrong there, related places, and perhaps a fix.

Columns count characters. The parser counts bytes, which differs in a line that is not ASCII, so the
findings of a rule are converted once.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from handfast.catalogue import Harm

Confidence = Literal["high", "medium"]
"""How sure a finding is: "high" if the evidence in the code is complete."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A part of a file. Lines and columns count from 1; `end_column` is the first one after it."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Related:
    """Another place, and how it is related to the finding."""

    place: Span
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of a file, and the text that replaces it."""

    place: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that fix a finding. A safe fix cannot change what the program does."""

    message: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One bug that a rule has found, at one place."""

    code: str
    message: str
    place: Span
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    confidence: Confidence = "high"
    harm: Harm | None = None
    """What the bug does to the program; None for HF000 and HF001, which are no bugs."""
    cause: str = field(default="", compare=False)
    """Findings of one package with the same code and cause are shown as one."""

    @property
    def pedantic(self) -> bool:
        """Whether it is only reported with `--pedantic`, or if its full code is selected."""
        return self.confidence != "high" or self.harm == "noise"

    def places(self) -> tuple[Span, ...]:
        """Its own place, and the related ones."""
        return (self.place, *(each.place for each in self.related))


def place_of(path: str, node: ast.AST) -> Span:
    """Return the place of a node, with columns in bytes."""
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end_column = getattr(node, "end_col_offset", None)
    return Span(path, line, column + 1, end_line, (end_column or column) + 1)


# --- columns ---------------------------------------------------------------------------------------

LineOf = Callable[[str, int], str]
"""Returns the text of a line, by path and number."""


def in_characters(finding: Finding, line_of: LineOf) -> Finding:
    """Return the finding with every column in characters."""
    fix = finding.fix
    if fix is not None:
        edits = (Edit(_place(each.place, line_of), each.text) for each in fix.edits)
        fix = replace(fix, edits=tuple(edits))
    return replace(
        finding,
        place=_place(finding.place, line_of),
        related=tuple(
            Related(_place(each.place, line_of), each.message) for each in finding.related
        ),
        fix=fix,
    )


def _place(place: Span, line_of: LineOf) -> Span:
    start = _column(line_of(place.path, place.line), place.column)
    end = _column(line_of(place.path, place.end_line), place.end_column)
    if (start, end) == (place.column, place.end_column):
        return place
    return replace(place, column=start, end_column=end)


def _column(line: str, column: int) -> int:
    if line.isascii():
        return column
    before = line.encode("utf-8", "surrogatepass")[: column - 1]
    return len(before.decode("utf-8", "ignore")) + 1
