"""What can be mended: the edits of fixes put into a text, and the text into its file.

A file is changed only if it still parses afterwards, and means something else nowhere but where a
fix says so. Of two fixes that touch the same stretch the first wins; the other has its turn when
the file is checked again.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tempfile
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import unified_diff

from holdfast.check.finding import Edit, Finding, Fix

__all__ = ["Mended", "diff", "mend", "mend_text", "write"]

_ENDING = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Mended:
    """A file, before and after; `fixed` are the findings that are mended by it."""

    path: str
    before: str
    after: str
    encoding: str
    fixed: tuple[Finding, ...]


def mend(findings: Iterable[Finding], *, unsafe: bool = False) -> list[Mended]:
    """What would become of the files. Nothing is written."""
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.fix is not None and (unsafe or finding.fix.safe):
            by_path[finding.place.path].append(finding)
    mended = (_mend_file(path, by_path[path]) for path in sorted(by_path))
    return [each for each in mended if each is not None]


def _mend_file(path: str, findings: list[Finding]) -> Mended | None:
    try:
        with open(path, "rb") as file:
            content = file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (OSError, SyntaxError, ValueError, LookupError):
        return None  # it was readable a moment ago; whoever changed it meanwhile, has it
    after, fixed = mend_text(text, findings)
    return Mended(path, text, after, encoding, tuple(fixed)) if fixed else None


def mend_text(text: str, findings: Iterable[Finding]) -> tuple[str, list[Finding]]:
    """The text with all fixes that go together, and what they mend. A fix that would leave a text
    that does not parse is left out."""
    wanted = _apart(text, findings)
    after = _put(text, [edit for _, edits in wanted for edit in edits])
    if _parses(after):
        return after, [finding for finding, _ in wanted]
    # One of them is to blame: each has to prove itself.
    good: list[tuple[Finding, list[_Span]]] = []
    for each in wanted:
        if _parses(_put(text, [edit for _, edits in (*good, each) for edit in edits])):
            good.append(each)
    after = _put(text, [edit for _, edits in good for edit in edits])
    return after, [finding for finding, _ in good]


_Span = tuple[int, int, str]
"""From, to, and what comes there instead; counted in characters of the whole text."""


def _apart(text: str, findings: Iterable[Finding]) -> list[tuple[Finding, list[_Span]]]:
    """The fixes that touch no stretch that an earlier one touches."""
    starts = _starts(text)
    taken: list[_Span] = []
    kept: list[tuple[Finding, list[_Span]]] = []
    for finding in sorted(findings, key=lambda each: each.place):
        spans = _spans(finding.fix, finding.place.path, starts, len(text))
        if spans is None or any(_meet(one, other) for one in spans for other in taken):
            continue
        taken += spans
        kept.append((finding, spans))
    return kept


def _spans(fix: Fix | None, path: str, starts: list[int], end: int) -> list[_Span] | None:
    if fix is None or not fix.edits or any(edit.place.path != path for edit in fix.edits):
        return None
    spans = [_span(edit, starts) for edit in fix.edits]
    if any(not 0 <= start <= stop <= end for start, stop, _ in spans):
        return None
    if any(_meet(one, other) for at, one in enumerate(spans) for other in spans[:at]):
        return None
    return spans


def _span(edit: Edit, starts: list[int]) -> _Span:
    place = edit.place
    if not (0 < place.line < len(starts) and 0 < place.end_line < len(starts)):
        return (-1, -1, "")
    start = starts[place.line - 1] + place.column - 1
    return (start, starts[place.end_line - 1] + place.end_column - 1, edit.text)


def _meet(one: _Span, other: _Span) -> bool:
    if one[:2] == other[:2]:
        return True  # two insertions at one place: nobody knows which comes first
    return one[0] < other[1] and other[0] < one[1]


def _starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _ENDING.finditer(text)), len(text) + 1]


def _put(text: str, spans: list[_Span]) -> str:
    # From the end, so that what is still to come has not moved.
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def write(mended: Mended) -> None:
    """Put the new text into the file: all of it, or, if that fails, nothing."""
    folder, name = os.path.split(os.path.realpath(mended.path))
    content = mended.after.encode(mended.encoding)
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        path = os.path.join(folder, name)
        os.chmod(beside, os.stat(path).st_mode & 0o7777)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def diff(mended: Mended) -> str:
    """What would change, as `diff -u` shows it."""
    before = mended.before.splitlines(keepends=True)
    after = mended.after.splitlines(keepends=True)
    lines = unified_diff(before, after, mended.path, mended.path)
    whole = (
        each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines
    )
    return "".join(whole)
