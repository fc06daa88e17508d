"""Applies fixes: puts their edits into the text of a file, shows the difference, writes the file.

A fix after which the file would not parse is left out. Of two fixes that touch the same text the
first is applied; the other one may be when the file is checked again.
"""

from __future__ import annotations

import ast
import errno
import io
import os
import re
import sys
import tempfile
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import diff_bytes, unified_diff

from handfast._check.finding import Edit, Finding, Fix
from handfast._check.source import SourceError, decoded, read

_PREFIX = ".handfast-"
_ENDING = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file before and after; `fixed` are the findings whose fixes are applied."""

    path: str
    before: str
    after: str
    fixed: tuple[Finding, ...]


def apply_fixes(
    findings: Iterable[Finding], texts: Mapping[str, str], *, unsafe: bool = False
) -> list[FixedFile]:
    """Return the changed files; `texts` are the files as they were checked. Nothing is written."""
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.fix is not None and (unsafe or finding.fix.safe):
            by_path[finding.place.path].append(finding)
    files: list[FixedFile] = []
    for path in sorted(by_path.keys() & texts.keys()):
        after, fixed = fix_text(texts[path], by_path[path])
        if fixed:
            files.append(FixedFile(path, texts[path], after, tuple(fixed)))
    return files


def fix_text(text: str, findings: Iterable[Finding]) -> tuple[str, list[Finding]]:
    """Return the text with all fixes that can be applied together, and their findings."""
    wanted = _not_overlapping(text, findings)
    after = _apply(text, [edit for _, edits in wanted for edit in edits])
    if _parses(after):
        return after, [finding for finding, _ in wanted]
    # One of them breaks the file: add them one by one.
    good: list[tuple[Finding, list[_Replacement]]] = []
    for each in wanted:
        if _parses(_apply(text, [edit for _, edits in (*good, each) for edit in edits])):
            good.append(each)
    after = _apply(text, [edit for _, edits in good for edit in edits])
    return after, [finding for finding, _ in good]


_Replacement = tuple[int, int, str]
"""Start and end, in characters from the start of the text, and the new text."""


def _not_overlapping(
    text: str, findings: Iterable[Finding]
) -> list[tuple[Finding, list[_Replacement]]]:
    """Return the fixes that do not overlap with an earlier one."""
    starts = _starts(text)
    taken: list[_Replacement] = []
    kept: list[tuple[Finding, list[_Replacement]]] = []
    for finding in sorted(findings, key=lambda each: each.place):
        spans = _replacements(finding.fix, finding.place.path, starts, len(text))
        if spans is None or any(_overlap(one, other) for one in spans for other in taken):
            continue
        taken += spans
        kept.append((finding, spans))
    return kept


def _replacements(
    fix: Fix | None, path: str, starts: list[int], end: int
) -> list[_Replacement] | None:
    if fix is None or not fix.edits or any(edit.place.path != path for edit in fix.edits):
        return None
    spans = [_replacement(edit, starts) for edit in fix.edits]
    if any(not 0 <= start <= stop <= end for start, stop, _ in spans):
        return None
    if any(_overlap(one, other) for at, one in enumerate(spans) for other in spans[:at]):
        return None
    return spans


def _replacement(edit: Edit, starts: list[int]) -> _Replacement:
    place = edit.place
    if not (0 < place.line < len(starts) and 0 < place.end_line < len(starts)):
        return (-1, -1, "")
    start = starts[place.line - 1] + place.column - 1
    return (start, starts[place.end_line - 1] + place.end_column - 1, edit.text)


def _overlap(one: _Replacement, other: _Replacement) -> bool:
    if one[:2] == other[:2]:
        return True  # two insertions at one place have no order
    return one[0] < other[1] and other[0] < one[1]


def _starts(text: str) -> list[int]:
    return [0, *(match.end() for match in _ENDING.finditer(text)), len(text) + 1]


def _apply(text: str, spans: list[_Replacement]) -> str:
    # From the end, so that earlier positions stay valid.
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


def write(fixed: FixedFile) -> None:
    """Write the new text. Raise `OSError` if that fails, or if the file must not or cannot be
    replaced without a loss; it is then unchanged."""
    path = os.path.realpath(fixed.path)
    state = os.stat(path)
    # Replacing a file needs no permission to write to it.
    if not state.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, "the file is read-only")
    if state.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has several hard links, and one of them would be replaced")
    if os.path.islink(fixed.path) and not _is_near(path, fixed.path):
        raise OSError(errno.ELOOP, "it is a link to a file outside of this folder")
    content = _checked_content(path, fixed.before)
    new = _encoded(fixed.after, content)
    folder = os.path.dirname(path)
    handle, beside = _nameless(folder) or tempfile.mkstemp(dir=folder, prefix=_PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            if hasattr(os, "fchown"):
                os.fchown(handle, state.st_uid, state.st_gid)  # a no-op for the owner
                os.fchmod(handle, state.st_mode & 0o7777)
            if not os.path.exists(beside):
                os.fsync(handle)  # otherwise `replace` does it, and the name is there for long
                _name(handle, beside)
        # An editor may have saved the file since: what is left of this race is one call.
        _checked_content(path, fixed.before)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def _nameless(folder: str) -> tuple[int, str] | None:
    """Open a new file without a name, and return the name to give it; None if that is impossible.

    If the process is killed while it writes, no such file is left.
    """
    if sys.platform != "linux" or not os.path.exists("/proc/self/fd"):
        return None
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # not every file system has them
        return None
    return handle, os.path.join(folder, f"{_PREFIX}{os.getpid()}")


def _name(handle: int, path: str) -> None:
    # With a folder, Python calls `linkat`, which follows the link in /proc.
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{handle}", os.path.basename(path), dst_dir_fd=folder)
    finally:
        os.close(folder)


def _encoded(text: str, content: bytes) -> bytes:
    """Return the bytes of a new text in the encoding of the old content."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return text.encode(encoding)
    except ValueError as error:
        raise OSError(errno.EILSEQ, str(error)) from None


def _is_near(path: str, link: str) -> bool:
    folders = (os.getcwd(), os.path.dirname(os.path.abspath(link)))
    return any(path.startswith(os.path.realpath(each) + os.sep) for each in folders)


def _checked_content(path: str, text: str) -> bytes:
    """Return the bytes of a file, if they are still those that were checked."""
    try:
        content = read(path)
        if decoded(path, content) == text:
            return content
    except SourceError:
        pass  # it was readable a moment ago
    raise OSError(errno.ESTALE, "it has changed since it was checked")


def diff(fixed: FixedFile) -> bytes:
    """Return the change as a patch for `git apply` and `patch -p1`, in the encoding of the file.

    Raise `OSError` if the file has changed since it was checked.
    """
    content = _checked_content(fixed.path, fixed.before)
    before, after = (list(io.BytesIO(each)) for each in (content, _encoded(fixed.after, content)))
    old, new = (_patch_name(f"{side}/{fixed.path.lstrip(os.sep)}") for side in "ab")
    lines = diff_bytes(unified_diff, before, after, old, new)
    return b"".join(
        each if each.endswith(b"\n") else each + b"\n\\ No newline at end of file\n"
        for each in lines
    )


def _patch_name(name: str) -> bytes:
    """Return a file name as git writes it: in quotes, with escapes, if it needs them."""
    plain = os.fsencode(name.replace(os.sep, "/"))
    if all(0x20 <= byte != 0x7F and byte not in b'"\\' for byte in plain):
        return plain + b"\t" if b" " in plain else plain  # the tab ends a name with blanks
    quoted = b"".join(
        bytes([byte]) if 0x20 <= byte < 0x7F and byte not in b'"\\' else b"\\%03o" % byte
        for byte in plain
    )
    return b'"' + quoted + b'"'
