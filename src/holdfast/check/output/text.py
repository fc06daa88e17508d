"""For people: one line for each finding, then the source with both places marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator

from holdfast.check.finding import Finding, Place, Related
from holdfast.check.report import Report
from holdfast.check.selection import BROKEN

__all__ = ["summary", "text"]

LinesOf = Callable[[str], list[str]]
_TAB = 4
# Longer than that, and a terminal breaks the line, with the marks below it.
_WIDTH = 160


class _Paint:
    """Words in colour, or as they are."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, style: str, words: str) -> str:
        return f"\x1b[{style}m{words}\x1b[0m" if self._colour and words else words


_BOLD, _RED, _BLUE, _CYAN = "1", "1;31", "1;34", "36"


def text(report: Report, lines_of: LinesOf, *, colour: bool = False) -> str:
    """All findings, and a last line that counts them."""
    paint = _Paint(colour)
    blocks = [_block(each, lines_of, paint) for each in report.everything]
    return "".join(f"{block}\n\n" for block in blocks) + summary(report) + "\n"


def summary(report: Report) -> str:
    """The last line."""
    if report.clean:
        return f"All clear: {_count(report.files, 'file')} checked."
    found = f"Found {_count(len(report.findings), 'problem')}"
    tail = f", and {_count(len(report.broken), 'file')} not checked" if report.broken else ""
    fixes = [each.fix for each in report.findings if each.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    hints = [f"{safe} can be mended with --fix"] if safe else []
    if len(fixes) > safe:
        hints.append(f"{len(fixes) - safe} with --unsafe-fixes: look at --diff first")
    return f"{found}{tail}." + (f" Of these, {'; '.join(hints)}." if hints else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _block(finding: Finding, lines_of: LinesOf, paint: _Paint) -> str:
    place = finding.place
    where = f"{paint(_BOLD, place.path)}:{place.line}:{place.column}"
    rows = [f"{where}: {paint(_RED, finding.code)} {finding.message}"]
    if finding.code != BROKEN or lines_of(place.path):
        rows += _source(finding, lines_of, paint)
    if finding.fix is not None:
        how = "" if finding.fix.safe else " (--unsafe-fixes)"
        rows.append(f"  {paint(_CYAN, 'help')}: {finding.fix.message}{how}")
    if finding.show:
        rows.append(f"  {paint(_CYAN, 'show it')}: {finding.show}")
    return "\n".join(rows)


# --- the source ----------------------------------------------------------------------------------


def _source(finding: Finding, lines_of: LinesOf, paint: _Paint) -> Iterator[str]:
    """The marked lines: those of the file itself first, then those of each other file."""
    own = finding.place.path
    marks: dict[str, list[tuple[Place, str, str]]] = {own: [(finding.place, "^", "")]}
    for each in _distinct(finding.related):
        marks.setdefault(each.place.path, []).append((each.place, "-", each.message))
    last = max(place.line for there in marks.values() for place, _, _ in there)
    margin = len(str(last))
    for path, there in marks.items():
        if path != own:
            first = there[0][0]
            yield f"{' ' * margin}{paint(_BLUE, '::: ')}{path}:{first.line}:{first.column}"
        yield from _marked(there, lines_of(path), margin, paint)
    yield paint(_BLUE, f"{' ' * margin} |")


def _distinct(related: Iterable[Related]) -> Iterable[Related]:
    return dict.fromkeys(related)


def _marked(
    marks: list[tuple[Place, str, str]], lines: list[str], margin: int, paint: _Paint
) -> Iterator[str]:
    bar = paint(_BLUE, f"{' ' * margin} |")
    yield bar
    before = 0
    for number in sorted({place.line for place, _, _ in marks}):
        if before and number > before + 2:
            yield paint(_BLUE, "...")
        elif before and number == before + 2:
            yield _line(lines, before + 1, margin, paint)
        yield _line(lines, number, margin, paint)
        for place, sign, words in marks:
            if place.line == number:
                row = _underline(place, sign, words, lines)
                yield f"{bar} {paint(_RED if sign == '^' else _BLUE, row)}"
        before = number


def _line(lines: list[str], number: int, margin: int, paint: _Paint) -> str:
    source = lines[number - 1] if 0 < number <= len(lines) else ""
    shown = _plain(source)
    shown = shown if len(shown) <= _WIDTH else shown[: _WIDTH - 3] + "..."
    return f"{paint(_BLUE, f'{number:>{margin}} |')} {shown}".rstrip()


def _underline(place: Place, sign: str, words: str, lines: list[str]) -> str:
    source = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    start = min(place.column - 1, len(source))
    end = place.end_column - 1 if place.end_line == place.line else len(source.rstrip())
    indent = min(_wide(source[:start]), _WIDTH)
    length = max(1, min(_wide(source[:end]), _WIDTH) - indent)
    return f"{' ' * indent}{sign * length} {words}".rstrip()


def _plain(source: str) -> str:
    """As it can be printed: a tab is blanks, and nothing moves the cursor."""
    source = source.replace("\t", " " * _TAB)
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in source)


def _wide(source: str) -> int:
    """How many places of a terminal it takes."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in source)
    marks = sum(unicodedata.combining(each) != 0 for each in source)
    return len(source) + wide - marks + source.count("\t") * (_TAB - 1)
