"""What a rule has found: the place, what is wrong there, and the other place that it has to do with.

Plain data. How it is shown is the business of `output`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

__all__ = ["Edit", "Finding", "Fix", "Place", "Related", "place_of"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of a file. Lines count from 1, columns from 1, both ends included in the lines."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Related:
    """Another place, and what it has to do with the finding."""

    place: Place
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Text put in the place of a stretch of a file."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What would mend it. A safe one cannot change what the program means."""

    message: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One bug, as far as reading can tell."""

    code: str
    message: str
    place: Place
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    pedantic: bool = False
    show: str = field(default="", compare=False)
    """The line of pytest that would show it, where there is one."""


def place_of(path: str, node: ast.AST) -> Place:
    """Where a node stands."""
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end_column = getattr(node, "end_col_offset", None)
    return Place(path, line, column + 1, end_line, (end_column or column) + 1)
