"""Where a thing was born: captured raw, formatted late.

A birth place is a code object and an instruction offset. Both are at hand in every
frame, so taking them costs nothing; the file, the line and the text are looked up
only when somebody reads them. Capturing a whole stack would cost ten spawns.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType

__all__ = ["Origin"]


class Origin:
    """The line that created a task, a resource or a process.

    >>> origin = Origin.here()
    >>> origin.function
    '<module>'
    """

    __slots__ = ("code", "lasti")

    def __init__(self, code: CodeType, lasti: int) -> None:
        self.code = code
        self.lasti = lasti

    @classmethod
    def here(cls, depth: int = 0) -> Origin:
        """The line that called this, or one `depth` frames further out."""
        return intern_origin(sys._getframe(depth + 1).f_code, sys._getframe(depth + 1).f_lasti)

    @property
    def filename(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def lineno(self) -> int:
        # co_positions has one entry for each instruction of two bytes.
        for index, (line, *_) in enumerate(self.code.co_positions()):
            if index == self.lasti // 2 and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def source(self) -> str:
        """The text of the line, stripped; empty where the source is not at hand."""
        return linecache.getline(self.filename, self.lineno).strip()

    def __str__(self) -> str:
        return f"{_short(self.filename)}:{self.lineno} in {self.function}"

    def __repr__(self) -> str:
        return f"<Origin {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Origin):
            return NotImplemented
        return self.code is other.code and self.lasti == other.lasti

    def __hash__(self) -> int:
        return hash((id(self.code), self.lasti))


def _short(filename: str) -> str:
    """Relative to where the reader stands, if that is shorter."""
    try:
        relative = os.path.relpath(filename)
    except (ValueError, OSError):  # another drive; a working directory that is gone
        return filename
    return relative if len(relative) < len(filename) else filename


# One Origin for each line that spawns, so that a hundred thousand tasks born on one line
# share it. Code made by exec() would fill the table without end: it is emptied when full.
_ORIGINS: dict[int, Origin] = {}
_FULL = 8192


def intern_origin(code: CodeType, lasti: int) -> Origin:
    """The shared Origin of this instruction."""
    # hash(code) reads the whole bytecode. The sum below is as good: the bytecode lies inside
    # the code object, so two live instructions never give the same number.
    key = id(code) + lasti
    origin = _ORIGINS.get(key)
    if origin is None or origin.code is not code or origin.lasti != lasti:
        if len(_ORIGINS) >= _FULL:
            _ORIGINS.clear()
        origin = _ORIGINS[key] = Origin(code, lasti)
    return origin
