"""One file, read: its bytes, its text, its tree. Nothing of it is imported or run.

A file that has no word of asyncio in it is not parsed at all: that is nine files in ten.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Broken", "Source", "decoded", "is_of_interest", "lines_in", "parse", "read"]

# Words without which no rule has anything to say. Bytes, so that nothing has to be decoded.
# Quicker to look for one by one than all in one expression.
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
_SPELT_OTHERWISE = (re.compile(rb"async[ \t]+def"), re.compile(rb"noqa[^\n]*HF"))

_LINE_END = re.compile(r"\r\n|\r|\n")


class Broken(Exception):
    """A file that cannot be read or parsed; `line` is where."""

    def __init__(self, path: str, line: int, why: str) -> None:
        super().__init__(f"{path}:{line}: {why}")
        self.path = path
        self.line = line
        self.why = why


@dataclass(slots=True)
class Source:
    """A file that was parsed."""

    path: str
    text: str
    tree: ast.Module
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = lines_in(self.text)

    def line(self, number: int) -> str:
        """The text of a line, counted from 1; empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def is_of_interest(content: bytes) -> bool:
    """Whether any rule could have something to say about a file."""
    return any(word in content for word in _WORDS) or any(
        form.search(content) for form in _SPELT_OTHERWISE
    )


def read(path: str) -> bytes:
    """The bytes of a file; `Broken` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Broken(path, 1, error.strerror or str(error)) from None


def decoded(path: str, content: bytes) -> str:
    """The text of a file, in the encoding that it declares; `Broken` if it is not in it."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise Broken(path, 1, f"cannot be decoded: {error}") from None


def lines_in(text: str) -> list[str]:
    """Its lines, as the parser counts them: a form feed ends none."""
    lines = _LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def parse(path: str, content: bytes) -> Source:
    """The tree of a file; `Broken` says what is wrong with it."""
    text = decoded(path, content)
    try:
        with warnings.catch_warnings():
            # What the compiler thinks of an invalid escape is not ours to say.
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except SyntaxError as error:
        raise Broken(path, error.lineno or 1, f"syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Broken(path, 1, f"cannot be parsed: {error}") from None
    return Source(path, text, tree)
