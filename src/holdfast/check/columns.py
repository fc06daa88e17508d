"""Columns as people count them. The parser counts bytes, which is not the same where a line holds
anything but ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.check.finding import Edit, Finding, Place, Related

__all__ = ["in_characters"]

LineOf = Callable[[str, int], str]
"""The text of a line, by path and number."""


def in_characters(finding: Finding, line_of: LineOf) -> Finding:
    """The finding, with every column in characters."""
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


def _place(place: Place, line_of: LineOf) -> Place:
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
