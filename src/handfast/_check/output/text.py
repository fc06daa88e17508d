"""Text for the terminal: one line for each finding, then the source with all its places marked."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping

from handfast._check.finding import Finding, Span
from handfast._check.output import page_url, printable
from handfast._check.report import Report
from handfast._check.settings.selection import BROKEN
from handfast._check.source import SourceError, decoded, lines_in, read

LinesOf = Callable[[str], list[str]]
_TAB = 4
# A terminal would wrap a longer line, and its marks would not fit.
_WIDTH = 160
# How many of the other places with the same cause are listed.
_PLACES = 5


class Lines:
    """Returns the lines of a file, by its path; none if it cannot be read.

    >>> Lines({"-": "a\\nb"})("-")
    ['a', 'b']
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._known = {path: lines_in(text) for path, text in (texts or {}).items()}

    def __call__(self, path: str) -> list[str]:
        if path not in self._known:
            try:
                self._known[path] = lines_in(decoded(path, read(path)))
            except SourceError:
                self._known[path] = []
        return self._known[path]


class _Paint:
    """Adds colour to text, if it is enabled."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour and text else text

    def link(self, url: str, text: str) -> str:
        """Make a text a link, which terminals show as such; others ignore it."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self._colour and url else text


_BOLD, _RED, _BLUE, _CYAN = "1", "1;31", "1;34", "36"


def text(
    report: Report,
    lines_of: LinesOf | None = None,
    *,
    colour: bool = False,
    quiet: bool = False,
    **_: object,
) -> str:
    """Return all findings, and a last line that counts them."""
    paint = _Paint(colour)
    lines_of = lines_of or Lines(report.texts)
    newer = {each.path for each in report.broken if each.python}
    blocks = [
        # One line that counts many files shows the source of none.
        _first_line(each[0], paint)
        if len(newer) > 1 and each[0].code == BROKEN and each[0].place.path in newer
        else _block(each, lines_of, paint)
        for each in report.causes
    ]
    return "".join(f"{block}\n\n" for block in blocks) + last_line(report, quiet)


def last_line(report: Report, quiet: bool) -> str:
    """Return the summary as a line; nothing if it is not wanted."""
    return "" if quiet else f"{summary(report)}\n"


def summary(report: Report) -> str:
    """Return the last line. If nothing was found, it says what was looked at."""
    if report.clean:
        functions = _count(report.functions, "function")
        seen = f": {functions}, {_count(report.creations, 'task creation')}"
        more = report.hidden
        hint = "" if more is None else f" --pedantic would add {_count(more, 'finding')}."
        files = f"{_count(report.files, 'file')} checked"
        return f"All clear: {files}{seen if report.functions else ''}.{hint}"
    broken = len(report.everything) - len(report.findings)
    causes = len(report.causes) - broken
    found = f"Found {_count(causes, 'problem')}"
    if causes < len(report.findings):
        found += f" in {_count(len(report.findings), 'place')}"
    tail = f", and {_count(len(report.broken), 'file')} not checked" if report.broken else ""
    fixes = [each.fix for each in report.findings if each.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    hints = [f"{safe} fixable with --fix"] if safe else []
    if len(fixes) > safe:
        hints.append(f"{len(fixes) - safe} fixable with --unsafe-fixes (review with --diff first)")
    return f"{found}{tail}." + (f" {', '.join(hints)}." if hints else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _block(findings: tuple[Finding, ...], lines_of: LinesOf, paint: _Paint) -> str:
    finding, others = findings[0], findings[1:]
    place = finding.place
    rows = [_first_line(finding, paint)]
    if finding.code != BROKEN or lines_of(place.path):
        rows += _source(finding, lines_of, paint)
    rows += _same(others, paint)
    if finding.pedantic:
        what = f"{finding.confidence} confidence; harm: {finding.harm}"
        rows.append(f"  {paint(_CYAN, 'note')}: {what}")
    if finding.fix is not None:
        how = "" if finding.fix.safe else " (--unsafe-fixes)"
        rows.append(f"  {paint(_CYAN, 'help')}: {printable(finding.fix.message)}{how}")
    return "\n".join(rows)


def _same(others: tuple[Finding, ...], paint: _Paint) -> Iterator[str]:
    """Yield the first of the other places with the same cause, and how many there are."""
    if not others:
        return
    yield f"  {paint(_CYAN, 'also')}: the same in {_count(len(others), 'more place')}:"
    for each in others[:_PLACES]:
        place = each.place
        yield f"    {paint(_BOLD, printable(place.path))}:{place.line}:{place.column}"
    if len(others) > _PLACES:
        rest = _count(len(others) - _PLACES, "more place")
        yield f"    and {rest}, which --output-format concise lists"


def first_line(finding: Finding, colour: bool, path: bool = True) -> str:
    """Return the line with place, code and message; the code is a link to its page."""
    return _first_line(finding, _Paint(colour), path)


def painted_path(path: str, colour: bool) -> str:
    """Return the path as it is shown."""
    return _Paint(colour)(_BOLD, printable(path))


def _first_line(finding: Finding, paint: _Paint, path: bool = True) -> str:
    place = finding.place
    where = f"{paint(_BOLD, printable(place.path))}:" if path else ""
    code = paint.link(page_url(finding.code), paint(_RED, finding.code))
    return f"{where}{place.line}:{place.column}: {code} {printable(finding.message)}"


# --- the source ----------------------------------------------------------------------------------


def _source(finding: Finding, lines_of: LinesOf, paint: _Paint) -> Iterator[str]:
    """Yield the marked lines: those of the file itself first, then those of other files."""
    own = finding.place.path
    marks: dict[str, list[tuple[Span, str, str]]] = {own: [(finding.place, "^", "")]}
    for each in dict.fromkeys(finding.related):
        marks.setdefault(each.place.path, []).append((each.place, "-", printable(each.message)))
    last = max(place.line for there in marks.values() for place, _, _ in there)
    margin = len(str(last))
    for path, there in marks.items():
        if path != own:
            first = there[0][0]
            yield f"{' ' * margin}{paint(_BLUE, '::: ')}{printable(path)}:{first.line}:{first.column}"
        yield from _marked(there, lines_of(path), margin, paint)
    yield paint(_BLUE, f"{' ' * margin} |")


def _marked(
    marks: list[tuple[Span, str, str]], lines: list[str], margin: int, paint: _Paint
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
        for place, sign, label in marks:
            if place.line == number:
                row = _underline(place, sign, label, lines)
                yield f"{bar} {paint(_RED if sign == '^' else _BLUE, row)}"
        before = number


def _line(lines: list[str], number: int, margin: int, paint: _Paint) -> str:
    source = lines[number - 1] if 0 < number <= len(lines) else ""
    shown = _plain(source)
    shown = shown if len(shown) <= _WIDTH else shown[: _WIDTH - 3] + "..."
    return f"{paint(_BLUE, f'{number:>{margin}} |')} {shown}".rstrip()


def _underline(place: Span, sign: str, label: str, lines: list[str]) -> str:
    source = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    start = min(place.column - 1, len(source))
    end = place.end_column - 1 if place.end_line == place.line else len(source.rstrip())
    indent = min(_wide(source[:start]), _WIDTH)
    length = max(1, min(_wide(source[:end]), _WIDTH) - indent)
    return f"{' ' * indent}{sign * length} {label}".rstrip()


def _plain(source: str) -> str:
    """Replace tabs by blanks, and other control characters by a visible one."""
    source = source.replace("\t", " " * _TAB)
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in source)


def _wide(source: str) -> int:
    """Return the number of columns on a terminal."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in source)
    marks = sum(unicodedata.combining(each) != 0 for each in source)
    return len(source) + wide - marks + source.count("\t") * (_TAB - 1)
