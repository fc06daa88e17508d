"""The bytes, text and tree of one file. Nothing is imported or run.

A file without any name of asyncio is not parsed at all: these are nine files in ten.
"""

from __future__ import annotations

import ast
import errno
import io
import os
import re
import stat
import sys
import tokenize
import warnings
from dataclasses import dataclass, field

# Without one of these, no rule reports anything. Bytes, so that nothing has to be decoded; a search
# for each is faster than one regular expression.
_WORDS = (
    b"asyncio",
    b"async def",
    b"create_task",
    b"ensure_future",
    b"CancelledError",
    b"ExceptionGroup",
    b"TaskGroup",
    b"task_group",
    b"run_in_executor",
    b"to_thread",
    b"call_soon",
)
# A search for `noqa[^\n]*HF` would start again at each `noqa` of a long line.
_MORE_FORMS = (
    re.compile(rb"async[ \t]+def"),
    re.compile(rb"^(?>[^\n]*?noqa)[^\n]*?HF", re.MULTILINE),
)

# A tree takes up to 1,000 bytes for each of these, and up to 500 for each byte of its source.
_SEPARATORS = (b"\n", b",", b"(")
_MOST_PARTS = 500_000
_MOST_BYTES = 10_000_000

_LINE_END = re.compile(r"\r\n|\r|\n")

_LINE_START = 1_000
# Syntax that an older parser rejects: how to recognise it on the rejected line, what it is, and
# the first Python that reads it.
_NEWER_SYNTAX: tuple[tuple[re.Pattern[str], str, tuple[int, int]], ...] = (
    (re.compile(r"\blazy\s+(import|from)\b"), "a lazy import", (3, 15)),
    (re.compile(r"[\[({]\s*\*.*\bfor\b"), "unpacking in a comprehension", (3, 15)),
    (re.compile(r"(?<!\w)(t|rt|tr)[\"']", re.IGNORECASE), "a t-string", (3, 14)),
    (re.compile(r"^\s*except\b\*?[^(]*,.*:"), "`except A, B:` without parentheses", (3, 14)),
    (
        # The same quotes inside: f"{names["x"]}".
        re.compile(r"(?<!\w)(?:f|rf|fr)([\"'])[^{}]*\{[^{}]*?\1[^{}]*\1[^{}]*\}", re.IGNORECASE),
        "an f-string with its own quotes inside",
        (3, 12),
    ),
    (re.compile(r"^\s*(class|(async\s+)?def)\s+\w+\s*\["), "a type parameter list", (3, 12)),
    (re.compile(r"^\s*type\s+\w+.*="), "a type statement", (3, 12)),
)


class SourceError(Exception):
    """A file cannot be read or parsed; `line` is where."""

    def __init__(self, path: str, line: int, why: str, python: str = "") -> None:
        super().__init__(f"{path}:{line}: {why}")
        self.path = path
        self.line = line
        self.why = why
        self.python = python
        """The Python that can read the file, if this one is too old."""


@dataclass(slots=True)
class Source:
    """A parsed file."""

    path: str
    text: str
    tree: ast.Module
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = lines_in(self.text)

    def line(self, number: int) -> str:
        """Return a line, counted from 1; empty after the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def is_of_interest(content: bytes) -> bool:
    """Whether any rule could report something in a file."""
    return any(word in content for word in _WORDS) or any(
        form.search(content) for form in _MORE_FORMS
    )


LARGEST = 1_000_000_000
"""Bytes of a file that is read. A much smaller one is not parsed any more, but its facts count."""


def read(path: str) -> bytes:
    """Return the bytes of a file; raise `SourceError` if it cannot be read."""
    try:
        return read_regular(path, LARGEST)
    except OSError as error:
        raise SourceError(path, 1, error.strerror or str(error)) from None


def read_regular(path: str, most: int) -> bytes:
    """Return the bytes of a file; raise `OSError` if it cannot be read, or is a pipe or a device.

    A repository may have a pipe or a link to a device in its place, which would never end.
    """
    flag: int = getattr(os, "O_NONBLOCK", 0)  # to open a pipe waits for its writer
    with open(path, "rb", opener=lambda path, flags: os.open(path, flags | flag)) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if state.st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most:,} bytes", path)
        return file.read()


def decoded(path: str, content: bytes) -> str:
    """Return the text of a file; raise `SourceError` if it is not in its declared encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, ValueError, LookupError) as error:
        raise SourceError(path, 1, f"cannot be decoded: {error}") from None


def lines_in(text: str) -> list[str]:
    """Split a text as the parser does: a form feed does not end a line."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def parse(path: str, content: bytes) -> Source:
    """Parse a file; raise `SourceError` if it cannot be parsed."""
    size, parts = len(content), sum(map(content.count, _SEPARATORS))
    if size > _MOST_BYTES or parts > _MOST_PARTS:
        why = f"too large to be checked: {size:,} bytes, {parts:,} lines and expressions"
        raise SourceError(path, 1, why)
    text = decoded(path, content)
    try:
        with warnings.catch_warnings():
            # Warnings about invalid escapes are for the author of the file.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, *_syntax_error(error, text)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        why = str(error) or "it is nested too deeply"  # the message of a MemoryError is empty
        raise SourceError(path, 1, f"cannot be parsed: {why}") from None
    return Source(path, text, tree)


def _syntax_error(error: SyntaxError, text: str) -> tuple[str, str]:
    """Return the message, and the version of Python that the syntax needs if it is a newer one."""
    here = sys.version_info[:2]
    lines = lines_in(text)
    at = (error.lineno or 1) - 1
    # Some of the patterns are quadratic, and a generated line may be as long as a file.
    line = lines[at][:_LINE_START] if at < len(lines) else ""
    message = f"syntax error: {error.msg}"
    parsed = f"parsed by Python {_dotted(here)}"
    for form, name, since in _NEWER_SYNTAX:
        if since > here and form.search(line):
            needs = f"{name} needs Python {_dotted(since)}: run handfast with it"
            return f"{message} ({parsed}; {needs})", _dotted(since)
    # It may be newer syntax that is not in the list.
    return (f"{message} ({parsed})" if error.msg == "invalid syntax" else message), ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
